#include "parallel/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "runtime/base/error.h"

namespace tandem {
namespace {

double after_warmup(const Schedule& s, std::int64_t iteration) {
  const double t = static_cast<double>(iteration - s.warmup_steps), done = std::min(t / s.decay_steps, 1.0);
  switch (s.kind) {
    case ScheduleKind::kCosine: {
      const double least = s.min_rate / s.rate;
      return s.rate * ((1 - least) * 0.5 * (1 + std::cos(std::numbers::pi * done)) + least);
    }
    case ScheduleKind::kExponential:
      return s.rate * std::pow(s.factor, s.staircase ? std::floor(t / s.decay_steps) : t / s.decay_steps);
    case ScheduleKind::kPolynomial:
      return (s.rate - s.min_rate) * std::pow(1 - done, s.power) + s.min_rate;
    case ScheduleKind::kStep: {
      const auto passed = std::lower_bound(s.boundaries.begin(), s.boundaries.end(), iteration) - s.boundaries.begin();
      return s.rate * std::pow(s.factor, static_cast<double>(passed));
    }
    default:
      return s.rate;
  }
}

// The options behind the colon; each is asked for once, what is left is unknown.
class Settings {
 public:
  Settings(std::string_view kind, std::string_view text) : kind_(kind) {
    while (!text.empty()) {
      const auto comma = std::min(text.find(','), text.size());
      const std::string_view one = text.substr(0, comma);
      const auto equal = one.find('=');
      if (equal == std::string_view::npos) throw UsageError(fmt::format("schedule {}: expected NAME=VALUE, found \"{}\"", kind_, one));
      values_[std::string(one.substr(0, equal))] = one.substr(equal + 1);
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  }

  double number(const std::string& name, double otherwise, double above, double most = 1e18) {
    const auto value = take(name);
    return value ? number_of(name, *value, above, most) : otherwise;
  }
  std::int64_t count(const std::string& name, std::int64_t otherwise) {
    const double v = number(name, static_cast<double>(otherwise), -1, 1e15);
    if (v != std::floor(v) || v < 0) throw UsageError(fmt::format("schedule {}: {} must be a whole number, is {}", kind_, name, v));
    return static_cast<std::int64_t>(v);
  }
  std::vector<double> list(const std::string& name) {
    std::vector<double> out;
    auto rest = take(name);
    while (rest && !rest->empty()) {
      const auto slash = std::min(rest->find('/'), rest->size());
      out.push_back(number_of(name, rest->substr(0, slash), 0, 1e15));
      rest->remove_prefix(std::min(slash + 1, rest->size()));
    }
    return out;
  }
  void expect_none_left() const {
    if (!values_.empty()) throw UsageError(fmt::format("schedule {} has no setting \"{}\"", kind_, values_.begin()->first));
  }

 private:
  std::optional<std::string_view> take(const std::string& name) {
    const auto it = values_.find(name);
    if (it == values_.end()) return {};
    const std::string_view value = it->second;
    values_.erase(it);
    return value;
  }
  double number_of(const std::string& name, std::string_view text, double above, double most) const {
    double v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || end != text.data() + text.size() || !(v > above) || !(v <= most)) {
      throw UsageError(fmt::format("schedule {}: {} must be a number above {} and at most {}, is \"{}\"", kind_, name, above, most, text));
    }
    return v;
  }

  std::string_view kind_;
  std::map<std::string, std::string_view> values_;
};

ScheduleKind kind_of(std::string_view name) {
  constexpr std::pair<std::string_view, ScheduleKind> kNames[] = {
      {"constant", ScheduleKind::kConstant},       {"cosine", ScheduleKind::kCosine},         {"step", ScheduleKind::kStep},
      {"exponential", ScheduleKind::kExponential}, {"polynomial", ScheduleKind::kPolynomial}, {"plateau", ScheduleKind::kPlateau}};
  for (const auto& [known, kind] : kNames) {
    if (known == name) return kind;
  }
  throw UsageError(fmt::format("the schedule must be constant, cosine, step, exponential, polynomial or plateau, is \"{}\"", name));
}

// Boundaries whose next iteration is the first of an epoch.
std::vector<std::int64_t> step_boundaries(Settings& settings, const ScheduleFrame& f) {
  std::vector<double> epochs = settings.list("at");
  const double every = settings.number("every", f.epochs / 3, 0);
  if (epochs.empty()) {
    for (double e = every; e < f.epochs && epochs.size() < 1000; e += every) epochs.push_back(e);
  }
  std::vector<std::int64_t> out;
  for (const double e : epochs) out.push_back(static_cast<std::int64_t>(std::llround(e * static_cast<double>(f.steps_per_epoch))) - 1);
  if (!std::is_sorted(out.begin(), out.end())) throw UsageError("schedule step: the epochs of at= must ascend");
  return out;
}

float reduced(const Schedule& s, float rate) { return static_cast<float>(std::max(static_cast<double>(rate) * s.factor, s.min_rate)); }

void check_frame(const ScheduleFrame& f) {
  if (!(f.rate > 0) || !std::isfinite(f.rate)) throw UsageError(fmt::format("the learning rate must be a number above 0, is {}", f.rate));
  if (!(f.min_rate >= 0) || f.min_rate > f.rate) {
    throw UsageError(fmt::format("the least learning rate must be between 0 and the rate {}, is {}", f.rate, f.min_rate));
  }
  if (!(f.warmup_epochs >= 0) || !std::isfinite(f.warmup_epochs)) {
    throw UsageError(fmt::format("the warm-up must take at least 0 epochs, has {}", f.warmup_epochs));
  }
}

}  // namespace

float rate_at(const Schedule& s, std::int64_t iteration) {
  if (iteration < s.warmup_steps) {
    const double share = static_cast<double>(iteration) / static_cast<double>(s.warmup_steps);
    return static_cast<float>(s.warmup_start + (s.rate - s.warmup_start) * share);
  }
  const double rate = after_warmup(s, iteration);
  return static_cast<float>(s.kind == ScheduleKind::kConstant ? rate : std::max(rate, s.min_rate));
}

PlateauState plateau_start(const Schedule& s) { return {.rate = static_cast<float>(s.rate)}; }

bool plateau_rebase(const Schedule& s, PlateauState& state) {
  if (!state.reductions) return false;
  float rate = static_cast<float>(s.rate);
  for (std::int64_t i = 0; i < *state.reductions; ++i) rate = reduced(s, rate);
  return std::exchange(state.rate, rate) != rate;
}

bool plateau_observe(const Schedule& s, PlateauState& state, double metric) {
  if (state.cooldown > 0) {
    --state.cooldown;
    state.wait = 0;
  }
  const bool better =
      !std::isnan(metric) && (!state.best || (s.higher_is_better ? metric - s.min_delta > *state.best : metric + s.min_delta < *state.best));
  if (better) {
    state.best = metric;
    state.wait = 0;
    return false;
  }
  if (state.cooldown > 0 || ++state.wait < s.patience || !(state.rate > static_cast<float>(s.min_rate))) return false;
  state.rate = reduced(s, state.rate);
  if (state.reductions) ++*state.reductions;
  state.cooldown = s.cooldown;
  state.wait = 0;
  return true;
}

Schedule parse_schedule(std::string_view text, const ScheduleFrame& f) {
  check_frame(f);
  const auto colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  Settings settings(name, text.substr(std::min(colon + 1, text.size())));
  const auto steps_of = [&](double epochs) { return epochs * static_cast<double>(f.steps_per_epoch); };
  Schedule s;
  s.kind = kind_of(name);
  s.rate = f.rate;
  s.min_rate = f.min_rate;
  s.higher_is_better = f.higher_is_better;
  s.warmup_steps = std::llround(steps_of(f.warmup_epochs));
  s.decay_steps = std::max(1.0, std::round(steps_of(f.epochs)) - static_cast<double>(s.warmup_steps));
  switch (s.kind) {
    case ScheduleKind::kStep:
      s.boundaries = step_boundaries(settings, f);
      s.factor = settings.number("factor", 0.1, 0, 1);
      break;
    case ScheduleKind::kExponential:
      s.decay_steps = steps_of(settings.number("every", 2, 0));
      s.factor = settings.number("factor", 0.94, 0, 1);
      s.staircase = settings.count("staircase", 0) != 0;
      break;
    case ScheduleKind::kPolynomial:
      s.power = settings.number("power", 1, 0);
      break;
    case ScheduleKind::kPlateau:
      s.factor = settings.number("factor", 0.1, 0, std::nextafter(1.0, 0.0));
      s.patience = settings.count("patience", 10);
      s.min_delta = settings.number("delta", 1e-4, -1e-300);
      s.cooldown = settings.count("cooldown", 0);
      break;
    default:
      break;
  }
  settings.expect_none_left();
  return s;
}

}  // namespace tandem
