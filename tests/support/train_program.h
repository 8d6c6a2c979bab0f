// Runs of `tandem train`: their words, how they are stopped on their way, and what they leave.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tandem::test {

using Words = std::vector<std::string>;
Words operator+(Words words, const Words& more);

std::size_t count_lines(const std::string& text);

// Starts the program, sends the signal `delay_ms` after `log` has so many lines, and gives its end: the exit code, or minus the signal it died of.
int run_until(std::vector<std::string> words, const std::string& log, std::size_t steps, int signal, int delay_ms = 0);

// What each step computed: step, loss, rate and norm, without the time it took.
std::vector<std::string> steps_of(const std::string& log);

// Two output folders hold the same weights, model and curves, the second nothing in checkpoint/ but its two files.
void expect_same_run(const std::string& a, const std::string& b);

}  // namespace tandem::test
