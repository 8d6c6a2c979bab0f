// Mutates valid files and reads them: fuzz FORMAT [--cases N] [--from N] [--case N [--write FILE]].
// Cases run one after the other in a child process; the parent sees signals and hangs, prints the case's number and goes on behind it.
// A case is determined by format, number and the seeds in tests/data. Exit 1: a signal, a hang, too much memory, or an exception that is
// not one of tandem's.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int kSlower = 4;  // how much the sanitizers cost, in time and memory
#else
constexpr int kSlower = 1;
#endif
constexpr double kMostSeconds = 5 * kSlower;
constexpr long kMostKilobytes = 512L * 1024 * kSlower;

// Written by the child, read by the parent.
struct Shared {
  std::atomic<std::uint64_t> current, accepted, refused;
  std::atomic<long> peak_kilobytes;
};

struct Options {
  std::string format;
  std::uint64_t from = 0, cases = 1000;
  std::string write;
};

Options parse(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: fuzz FORMAT [--cases N] [--from N] [--case N [--write FILE]]");
  Options o;
  o.format = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::runtime_error(name + " needs a value");
    if (name == "--cases") {
      o.cases = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (name == "--from") {
      o.from = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (name == "--case") {
      o.from = std::strtoull(argv[i + 1], nullptr, 10);
      o.cases = 1;
    } else if (name == "--write") {
      o.write = argv[i + 1];
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  return o;
}

constexpr int kOddException = 97, kTooMuchMemory = 98;

// The child: runs cases [from, to) and does not return.
[[noreturn]] void work(const Target& target, const std::vector<Bytes>& seeds, std::uint64_t from, std::uint64_t to, Shared& shared) {
  // A wild allocation fails here instead of taking the machine down.
  if (kSlower == 1) {
    const rlimit most{rlim_t{8} << 30, rlim_t{8} << 30};
    setrlimit(RLIMIT_AS, &most);
  }
  for (std::uint64_t i = from; i < to; ++i) {
    shared.current = i;
    const Bytes bytes = mutated(target.format, seeds, i);
    try {
      ++(target.accepts(bytes) ? shared.accepted : shared.refused);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s %llu: exception: %s\n", target.format.c_str(), static_cast<unsigned long long>(i), e.what());
      std::_Exit(kOddException);
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    shared.peak_kilobytes = std::max<long>(shared.peak_kilobytes, usage.ru_maxrss);
    if (usage.ru_maxrss > kMostKilobytes) std::_Exit(kTooMuchMemory);
  }
  std::exit(0);
}

// Waits for the child. Empty: it finished; else what happened to it.
std::string outcome(pid_t child, Shared& shared) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t seen = shared.current;
  auto since = Clock::now();
  while (true) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status)) return std::string("signal ") + strsignal(WTERMSIG(status));
      if (WEXITSTATUS(status) == kOddException) return "an exception that is not tandem's";
      if (WEXITSTATUS(status) == kTooMuchMemory) return "more than " + std::to_string(kMostKilobytes / 1024) + " MB";
      return WEXITSTATUS(status) == 0 ? "" : "exit " + std::to_string(WEXITSTATUS(status)) + " (a sanitizer's report stands above)";
    }
    if (shared.current != seen) {
      seen = shared.current;
      since = Clock::now();
    }
    if (std::chrono::duration<double>(Clock::now() - since).count() > kMostSeconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "no end after " + std::to_string(static_cast<int>(kMostSeconds)) + " s";
    }
    usleep(2000);
  }
}

int run(const Options& options) {
  const Target* target = nullptr;
  for (const Target& t : targets()) {
    if (t.format == options.format) target = &t;
  }
  if (!target) throw std::runtime_error("unknown format " + options.format);
  const std::vector<Bytes> seeds = seeds_of(*target, TANDEM_SOURCE_DIR "/tests/data");
  if (seeds.empty()) throw std::runtime_error("no seeds for " + options.format + " under " TANDEM_SOURCE_DIR "/tests/data");
  if (!options.write.empty()) {
    const Bytes bytes = mutated(options.format, seeds, options.from);
    std::ofstream(options.write, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void* page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error("mmap failed");
  Shared& shared = *new (page) Shared{};
  int faults = 0;
  constexpr int kMostFaults = 50;
  const std::uint64_t to = options.from + options.cases;
  for (std::uint64_t next = options.from; next < to && faults < kMostFaults;) {
    shared.current = next;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) work(*target, seeds, next, to, shared);
    const std::string fault = outcome(child, shared);
    if (fault.empty()) break;
    ++faults;
    std::printf("FAULT: %s; again: fuzz %s --case %llu\n", fault.c_str(), options.format.c_str(),
                static_cast<unsigned long long>(shared.current.load()));
    next = shared.current + 1;
  }
  std::printf("fuzz %s: %llu cases from %llu over %zu seeds: %llu accepted, %llu refused, %d faults, peak %ld MB\n", options.format.c_str(),
              static_cast<unsigned long long>(options.cases), static_cast<unsigned long long>(options.from), seeds.size(),
              static_cast<unsigned long long>(shared.accepted.load()), static_cast<unsigned long long>(shared.refused.load()), faults,
              shared.peak_kilobytes / 1024);
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tandem::fuzz

int main(int argc, char** argv) {
  try {
    return tandem::fuzz::run(tandem::fuzz::parse(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fuzz: %s\n", e.what());
    return 2;
  }
}
