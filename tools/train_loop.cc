#include "tools/train_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/command.h"

namespace tandem::cli {
namespace {

constexpr double kShownEvery = 0.2;   // seconds between two states of the progress line
constexpr double kWorthSaying = 5.0;  // percent of the time, while the epoch runs

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

TrainingBatch training_batch(const io::Batch& batch, std::uint64_t seed, std::int64_t step) {
  return {.inputs = {batch.x}, .target = batch.target, .weight = batch.weight, .seed = static_cast<std::int64_t>(seed), .step = step};
}

}  // namespace

TrainLoop::TrainLoop(Trainer& trainer, io::BatchSource& source, io::BatchSource* validation, const Scoring& scoring, RunFolder& folder,
                     TrainReport& report, const RunOptions& run, TaskPool& pool, LoopOptions options, const Console& console)
    : trainer_(trainer),
      source_(source),
      validation_(validation),
      scoring_(scoring),
      folder_(folder),
      report_(report),
      run_(run),
      pool_(pool),
      options_(std::move(options)),
      console_(console) {
  state_.plateau = plateau_start(options_.schedule);
}

void TrainLoop::resume(const RunState& state) {
  state_ = state;
  saved_ = true;
  source_.start(state.position);
  // A rate that was changed on purpose is where the reductions begin.
  if (options_.schedule.kind != ScheduleKind::kPlateau || !plateau_rebase(options_.schedule, state_.plateau)) return;
  console_.info(fmt::format("plateau: {:.4g} was reduced {} times so far: the rate is {:.4g}", options_.schedule.rate,
                            state_.plateau.reductions.value_or(0), state_.plateau.rate));
}

std::int64_t TrainLoop::steps_of_epoch() const { return options_.steps_per_epoch > 0 ? options_.steps_per_epoch : source_.batches(); }

bool TrainLoop::run(const std::function<Wish()>& wish) {
  if (state_.epoch >= options_.epochs && !stops_early())
    console_.info(fmt::format("the run has {} epochs behind it already; a larger --epochs than {} goes on", state_.epoch, options_.epochs));
  if (!options_.log.empty()) log_.emplace(options_.log, state_.step);
  std::string end = "finished";
  while (state_.epoch < options_.epochs || stops_early()) {
    if (stops_early()) {
      end = fmt::format("stopped early at epoch {}: no better {} for {} epochs", state_.epoch, monitored(), state_.epochs_since_best);
      console_.info(end);
      break;
    }
    if (!run_epoch(wish)) {
      save();
      write_report("stopped by a signal, its state saved");
      return false;
    }
  }
  if (!saved_) save();  // so that a larger --epochs goes on from here
  write_report(end);
  return true;
}

// Asked before an epoch, so that a run that goes on stands by what the one before decided.
bool TrainLoop::stops_early() const {
  return options_.early_stopping > 0 && state_.step_in_epoch == 0 && state_.epochs_since_best >= options_.early_stopping;
}

std::string TrainLoop::monitored() const { return !options_.monitor.empty() ? options_.monitor : validation_ ? "val_loss" : "loss"; }

bool TrainLoop::run_epoch(const std::function<Wish()>& wish) {
  console_.info(fmt::format("Epoch {}/{}", state_.epoch + 1, options_.epochs));
  epoch_started_ = now();
  waited_before_ = waited();
  steps_before_ = state_.step_in_epoch;
  samples_before_ = state_.score.samples;
  while (!state_.steps_done && state_.step_in_epoch < steps_of_epoch()) {
    const double asked = now();
    const auto batch = source_.next();
    if (!batch) break;
    say_damaged(source_);
    const double got = now(), decoded = source_.decode_seconds(), busy = busy_seconds();
    step(*batch);
    // Decoding has the threads of the steps: what it took of them while they did not compute, the devices waited for.
    const double took = now() - got, decoding = (source_.decode_seconds() - decoded) / pool_.threads(),
                 computing = (busy_seconds() - busy) / pool_.threads();
    kept_from_steps_ += std::clamp(took - computing, 0.0, std::max(0.0, decoding));
    step_seconds_ += now() - asked;
    state_.steps_done = batch->ends_pass && !options_.repeat && options_.steps_per_epoch == 0;
    const Wish wanted = wish();
    if (wanted == Wish::kStop) return false;
    const bool due = options_.checkpoint_steps > 0 && state_.step % options_.checkpoint_steps == 0;
    if (wanted == Wish::kSave || due) save();
  }
  state_.steps_done = true;
  return end_epoch(wish);
}

void TrainLoop::step(const io::Batch& batch) {
  const double started = now();
  state_.rate = static_cast<double>(rate());
  const StepReport report = trainer_.step(training_batch(batch, options_.seed, state_.step), static_cast<float>(state_.rate));
  if (!report.is_finite()) {
    const bool gradient = std::isfinite(report.loss);
    const std::string what = fmt::format("step {} (epoch {}): the {} is {}", state_.step, state_.epoch + 1, gradient ? "gradient's norm" : "loss",
                                         gradient ? report.gradient_norm : report.loss);
    if (options_.stop_on_nan) {
      write_report("stopped at " + what);
      stop(what);
    }
    console_.warn(what + ": the batch is passed over");
    ++passed_over_;
  }
  const std::int64_t rows = report.batch.samples, width = batch.target.size() / rows;
  if (report.is_finite()) {
    state_.score.samples += rows;
    // As Keras: the mean over the samples of what each step's loss was, penalty included.
    state_.score.loss_sum += report.batch.loss_sum;
    state_.penalty_sum += report.penalty * static_cast<double>(rows);
    const auto y = report.batch.prediction.as<float>(), t = batch.target.as<float>();
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<std::size_t>(r * width), count = static_cast<std::size_t>(width);
      state_.score.add(scoring_.measure(y.subspan(at, count), t.subspan(at, count)));
    }
  }
  log_step(report, now() - started);
  ++state_.step;
  ++state_.step_in_epoch;
  saved_ = false;
  state_.position = source_.position();
  say_progress(false);
}

float TrainLoop::rate() const {
  Schedule schedule = options_.schedule;
  if (schedule.kind == ScheduleKind::kPlateau) schedule.rate = static_cast<double>(state_.plateau.rate);
  return rate_at(schedule, state_.step);
}

void TrainLoop::log_step(const StepReport& report, double seconds) {
  if (!log_) return;
  const nlohmann::ordered_json line = {{"step", state_.step},
                                       {"epoch", state_.epoch},
                                       {"loss", report.loss},
                                       {"lr", state_.rate},
                                       {"grad_norm", report.gradient_norm},
                                       {"samples", report.batch.samples},
                                       {"img_s", static_cast<double>(report.batch.samples) / seconds}};
  log_->add(json_text(line, -1));
}

bool TrainLoop::end_epoch(const std::function<Wish()>& wish) {
  if (state_.score.samples == 0) {
    const std::string what = fmt::format("epoch {}: loss or gradient of every batch was no number", state_.epoch + 1);
    write_report("stopped at " + what);
    stop(what);
  }
  EpochRow row{.epoch = state_.epoch, .loss = loss_of_epoch(), .rate = state_.rate};
  row.measured = {state_.score.accuracy(), state_.score.mae(), state_.score.mse()};
  trainer_.group().let_arenas_go();  // what validation and saving take comes in their place
  bool save_wanted = false;
  if (validation_ && !validate_epoch(row, wish, save_wanted)) return false;
  row.seconds = now() - epoch_started_;
  row.samples = state_.score.samples - samples_before_;
  row.waited = waited() - waited_before_;
  say_progress(true, &row);
  state_.history.push_back(row);
  folder_.write_history(state_.history);
  ++state_.epoch;
  state_.step_in_epoch = 0;
  state_.steps_done = false;
  state_.score = {};
  state_.penalty_sum = 0;
  saved_ = false;
  if (!options_.repeat) state_.position = {state_.position.batch == 0 ? state_.position.pass : state_.position.pass + 1, 0};
  source_.start(state_.position);
  look_for_best(row);
  if (save_wanted || (options_.checkpoint_epochs > 0 && state_.epoch % options_.checkpoint_epochs == 0)) save();
  ended_epoch_ = true;
  if (state_.epoch < options_.epochs) write_report(fmt::format("running: {} of {} epochs done", state_.epoch, options_.epochs));
  return true;
}

// False: a signal stopped it. Nothing of the state has changed then, and the run that goes on validates this epoch from the beginning. A checkpoint
// that is wanted meanwhile waits until the pass is over: there is memory for one of them.
bool TrainLoop::validate_epoch(EpochRow& row, const std::function<Wish()>& wish, bool& save_wanted) {
  auto graph = std::make_shared<const Graph>(trainer_.trained(options_.averaged));
  const double started = now();
  report_.start_pass();
  const auto goes_on = [&wish, &save_wanted] {
    const Wish wanted = wish();
    save_wanted = save_wanted || wanted == Wish::kSave;
    return wanted != Wish::kStop;
  };
  const auto score =
      validate(graph, *validation_, scoring_, run_, pool_, {.each = [this](const ScoredSample& s) { report_.take(s); }, .goes_on = goes_on});
  say_damaged(*validation_);
  if (!score) {
    report_.drop_pass();
    return false;
  }
  row.validation_seconds = now() - started;
  row.val_loss = score->loss() + trainer_.penalty(options_.averaged);
  row.val_measured = {score->accuracy(), score->mae(), score->mse()};
  return true;
}

double TrainLoop::loss_of_epoch() const {
  const Score& score = state_.score;
  return score.samples ? (score.loss_sum + state_.penalty_sum) / static_cast<double>(score.samples) : 0;
}

// Behind an epoch of this process, or where there is no page: what an earlier one collected is not known any more, and its page stays.
void TrainLoop::write_report(std::string_view state) {
  if (ended_epoch_ || !folder_.has("report.html")) folder_.write_text("report.html", report_.html(state_.history, use(), state));
}

TrainReport::Use TrainLoop::use() const { return {step_seconds_, waited(), trainer_.group().device_use()}; }

double TrainLoop::busy_seconds() const {
  double seconds = 0;
  for (const DeviceUse& d : trainer_.group().device_use()) seconds += d.busy_seconds;
  return seconds;
}

std::optional<double> TrainLoop::monitored_value(const EpochRow& row) const {
  const std::string name = monitored();
  for (const auto& [own, value] : row.values()) {
    if (own == name) return value;
  }
  return {};
}

void TrainLoop::look_for_best(const EpochRow& row) {
  const auto value = monitored_value(row);
  if (!value) return;  // every batch was passed over
  if (std::isnan(*value) && !std::exchange(said_nan_, true))
    console_.warn(fmt::format("epoch {}: {} is no number, which is never the best and no improvement", row.epoch + 1, monitored()));
  if (options_.schedule.kind == ScheduleKind::kPlateau && plateau_observe(options_.schedule, state_.plateau, *value))
    console_.info(fmt::format("epoch {}: the learning rate falls to {:.4g}", row.epoch + 1, state_.plateau.rate));
  const bool better = !std::isnan(*value) && (!state_.best || (monitored().ends_with("accuracy") ? *value > *state_.best : *value < *state_.best));
  state_.epochs_since_best = better ? 0 : state_.epochs_since_best + 1;
  if (!better) return;
  state_.best = *value;
  if (options_.save_best) folder_.write_weights(trainer_.trained(options_.averaged), "best.h5", console_);
}

// What is kept must be worth going on from: weights that overflowed show in the loss only a step later.
void TrainLoop::save() {
  const FlatArrays& weights = trainer_.group().weights();
  for (std::size_t i = 0; i < weights.count(); ++i) {
    const float* values = weights.data(i);
    if (!std::all_of(values, values + weights.size(i), [](float v) { return std::isfinite(v); }))
      stop(fmt::format("after {} steps (epoch {}): {} has values that are no numbers", state_.step, state_.epoch + 1,
                       trainer_.options().parameters[i].name));
  }
  if (log_) log_->sync();
  trainer_.group().let_arenas_go();
  folder_.save(trainer_, state_, options_.settings);
  saved_ = true;
}

void TrainLoop::stop(const std::string& what) const {
  const std::string kept =
      folder_.has_checkpoint() ? fmt::format("the last good state is in {}", folder_.checkpoints()) : "there is no checkpoint before it";
  throw NotFinite(fmt::format("{}\n{}; a smaller --lr or --global-clip-norm may help", what, kept));
}

// Keras' line: steps, time for each, metrics in the order of their names.
void TrainLoop::say_progress(bool last, const EpochRow* row) {
  if (!last && (!console_.live || now() - shown_ < kShownEvery)) return;
  shown_ = now();
  const std::int64_t steps = steps_of_epoch(), done = state_.step_in_epoch;
  const double seconds = now() - epoch_started_;
  const double each = seconds / static_cast<double>(std::max<std::int64_t>(1, done - steps_before_));
  std::string text =
      fmt::format("{}/{} {} ", done, steps, console_.bar(static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, steps))));
  text += last ? fmt::format("{:.0f}s {:.0f}ms/step", seconds, each * 1000)
               : fmt::format("{:.0f}s {:.0f}ms/step", each * static_cast<double>(steps - done), each * 1000);
  const auto say = [&text](const char* name, const std::optional<double>& value) {
    if (value) text += fmt::format(" - {}: {:.4f}", name, *value);
  };
  const Score& score = state_.score;
  say("accuracy", score.accuracy());
  say("loss", loss_of_epoch());
  say("mae", score.mae());
  say("mse", score.mse());
  if (row) {
    say("val_accuracy", row->val_measured.accuracy);
    say("val_loss", row->val_loss);
    say("val_mae", row->val_measured.mae);
    say("val_mse", row->val_measured.mse);
  }
  if (row) text += fmt::format(" - learning_rate: {:.4g}", row->rate);
  // Without the validation pass: of the time in which the devices could have trained.
  const double training = row ? row->seconds - row->validation_seconds : seconds, waited_now = waited() - waited_before_;
  if (const double percent = 100 * waited_now / std::max(training, 1e-9); last || percent >= kWorthSaying)
    text += fmt::format(" (waited for data {:.0f} % of the time)", percent);
  console_.progress(text, last);
}

// Files that were left out (--bad-files skip), each once.
void TrainLoop::say_damaged(const io::BatchSource& source) {
  for (const auto& [index, why] : source.damaged()) {
    if (!damaged_said_.insert({&source, index}).second) continue;
    std::string text = why;  // the file stands in a line of its own
    for (std::size_t at = text.find("\n  "); at != std::string::npos; at = text.find("\n  ")) text.replace(at, 3, ", ");
    console_.warn(text + ": left out");
  }
}

}  // namespace tandem::cli
