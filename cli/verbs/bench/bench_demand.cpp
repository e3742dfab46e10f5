#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "bench/demand/stored_demand.hpp"
#include "bench/files/cached_data.hpp"
#include "cli/client/bounded_call.hpp"
#include "cli/foreground.hpp"
#include "cli/say.hpp"
#include "cli/verbs/bench/bench.hpp"
#include "cli/view/text.hpp"
#include "daemon/config/parse.hpp"

extern char** environ;  // NOLINT: unistd.h declares it with _GNU_SOURCE only

namespace spark::cli {
namespace {

constexpr Duration kBetweenLooks{100};
constexpr double kPatience = 10;  // seconds for the command to end after SIGTERM
constexpr const char* kStaged = "SPARK_STAGE_";

struct DemandOptions {
  std::string dataset, json_file;
  Duration limit{120'000};
};

// Watches the processes below this one until told to stop, and ends them when the time is over.
class Sampler {
 public:
  Sampler(std::vector<std::string> folders, double limit) : limit_(limit), watch_(std::move(folders)) {}

  // False where the system allows no more threads.
  bool start() {
    thread_ = start_thread([this] { run(); });
    return thread_.joinable();
  }

  void stop() {
    is_over_ = true;
    thread_.join();
  }

  bool ended_it() const { return signal_ != 0; }
  double waiting_share() const { return waiting_share_; }
  Result<bench::JobReads> result() const { return watch_.result(); }

 private:
  void run() {
    const auto pressure = bench::storage_pressure(root_);
    while (!is_over_) {
      const auto processes = bench::read_processes_below(root_, ::getpid());
      const double seconds = elapsed();
      if (signal_ == 0) watch_.look(seconds, processes);
      if (seconds > limit_ && signal_ == 0) end(processes, SIGTERM);
      if (seconds > limit_ + kPatience && signal_ != SIGKILL) end(processes, SIGKILL);
      std::this_thread::sleep_for(kBetweenLooks);
    }
    const auto now = bench::storage_pressure(root_);
    if (pressure && now && *now > *pressure)
      waiting_share_ = std::min(1.0, static_cast<double>(*now - *pressure) / 1e6 / elapsed());
  }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  void end(const std::map<pid_t, bench::ProcessReads>& processes, int signal) {
    signal_ = signal;
    for (const auto& [pid, reads] : processes) {
      if (signal == SIGKILL || reads.parent == ::getpid()) ::kill(pid, signal);
    }
  }

  const SystemRoot root_;  // the children are real, so is this
  const double limit_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> is_over_ = false;
  int signal_ = 0;
  double waiting_share_ = 0;
  bench::JobWatch watch_;
  std::thread thread_;  // writes the members above until it is joined
};

using StagedFolders = std::multimap<std::string, std::string>;  // folder → variable of `spark-stage run`

StagedFolders staged_folders() {
  StagedFolders folders;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const std::size_t equals = variable.find('=');
    if (!variable.starts_with(kStaged) || equals == std::string::npos) continue;
    std::error_code error;
    const auto folder = std::filesystem::canonical(variable.substr(equals + 1), error);
    if (!error && std::filesystem::is_directory(folder, error))
      folders.emplace(folder.string(), variable.substr(0, equals));
  }
  return folders;
}

// Where `spark-stage run` put the copies, and the dataset that was named.
Result<std::vector<std::string>> data_folders(Context& context, const StagedFolders& staged,
                                              const std::string& dataset) {
  std::vector<std::string> folders;
  for (const auto& [folder, variable] : staged) folders.push_back(folder);
  if (dataset.empty()) return folders;
  auto named = dataset_folder(context, dataset);
  if (!named) return named.take_error();
  folders.push_back(std::move(*named));
  return folders;
}

std::vector<std::string> variables_of(const std::vector<std::string>& folders, const StagedFolders& staged) {
  std::vector<std::string> variables;
  for (const auto& [folder, variable] : staged) {
    if (std::ranges::find(folders, folder) != folders.end()) variables.push_back(variable);
  }
  return variables;
}

// Bytes of the dataset, before the command reads it. No value: not known, as on file systems that do not tell
// (overlayfs, tmpfs, NFS), or without folders.
std::optional<Bytes> cached_before(const std::vector<std::string>& folders) {
  constexpr Duration kLook{10'000};
  if (folders.empty()) return std::nullopt;
  const auto look = [&]() -> Result<std::optional<Bytes>> { return bench::cached_data(folders); };
  return call_bounded(kLook, look).value_or(std::nullopt);
}

// What a job gets from the page cache without a call is not counted.
Result<> check_cached(const bench::JobReads& reads, std::optional<Bytes> cached) {
  const bool is_uncounted = reads.counted_at_storage && reads.may_lack_reads;
  if (!is_uncounted || !cached || *cached < reads.bytes / 10) return {};
  return fail(Errc::Invalid,
              "the command maps its files or reads with io_uring, and the page cache had " +
                  format_bytes(*cached) + " of the dataset before: what it read of these can't be counted",
              "measure it on a copy that is not cached: spark-stage drop, or as root echo 1 > "
              "/proc/sys/vm/drop_caches");
}

std::string order_words(bench::ReadOrder order) {
  switch (order) {
    case bench::ReadOrder::Sequential:
      return ", large ones read from end to end";
    case bench::ReadOrder::Random:
      return ", large ones read at random places";
    case bench::ReadOrder::Unknown:
      break;
  }
  return "";
}

std::string words_of(const bench::StoredDemand& demand) {
  const bench::JobReads& reads = demand.reads;
  const auto seconds = [](double value) {
    return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9)));
  };
  std::string text =
      "The job consumes " + format_rate(reads.rate.value) + " (95 %: " + format_rate(reads.rate.range.low) +
      " to " + format_rate(reads.rate.range.high) + "): " + format_bytes(reads.bytes) + " in " +
      seconds(reads.seconds) + ", after " + seconds(reads.before) + " without a read of its data.\n";
  if (reads.files > 0) {
    text += "It was seen to read " + counted(reads.files, "file") + " of " + format_bytes(reads.mean_file) +
            " on average" + order_words(reads.order) + ".\n";
  }
  for (const std::string& caution : demand.cautions()) text += "Caution: " + caution + ".\n";
  return text;
}

Result<> check_status(const std::string& command, int status, const Sampler& sampler) {
  if (status == 0 || sampler.ended_it()) return {};
  if (status == 128 + SIGINT) return fail(Errc::Cancelled, "interrupted", "nothing was kept");
  return fail(Errc::Failed,
              "'" + command + "' ended with status " + std::to_string(status) + ", so it was not measured",
              "run it alone until it works, then measure it");
}

Result<int> measure(Context& context, const DemandOptions& options, const std::filesystem::path& runs) {
  if (context.command.empty()) {
    return fail(Errc::Invalid, "spark-stage bench demand needs a command behind --",
                "for example: spark-stage run imagenet -- spark-stage bench demand -- python train.py");
  }
  const StagedFolders staged = staged_folders();
  const auto folders = data_folders(context, staged, options.dataset);
  if (!folders) return folders.take_error();
  const auto cached = cached_before(*folders);  // before there is a second thread
  Sampler sampler(*folders, std::chrono::duration<double>(options.limit).count());
  if (!sampler.start()) {
    return fail(Errc::Failed, "watching the command: the system allows no more threads",
                "raise the limit on processes (`ulimit -u`, pids.max)");
  }
  const auto status = run_in_foreground(context.command);
  sampler.stop();
  if (!status) return status.take_error();
  const std::string command = printable(join(context.command, " "));
  if (auto good = check_status(command, *status, sampler); !good) return good.take_error();
  auto reads = sampler.result();
  if (!reads) return reads.take_error();
  if (auto good = check_cached(*reads, cached); !good) return good.take_error();
  const bench::StoredDemand demand{context.timer.wall(),
                                   command,
                                   options.dataset,
                                   variables_of(reads->folders, staged),
                                   *reads,
                                   sampler.waiting_share(),
                                   cached.has_value()};
  if (auto saved = bench::save_demand(runs, demand); !saved) return saved.take_error();
  if (options.json_file != "-") {
    context.out << words_of(demand) << "Kept in " << printable(bench::demand_file(runs).string())
                << ": the next `spark-stage bench` uses it.\n";
  }
  if (!options.json_file.empty()) {
    const std::string text = pretty(bench::to_json(demand)) + "\n";
    if (auto written = write_report(context, options.json_file, text, "The measurement"); !written) {
      return written.take_error();
    }
  }
  return 0;
}

}  // namespace

namespace {

// A job whose dataset is not known may be of any.
bool is_of_dataset(const bench::StoredDemand& demand, const std::string& dataset) {
  if (dataset.empty() || dataset == demand.dataset) return true;
  if (demand.dataset.empty() && demand.staged.empty()) return true;
  return std::ranges::find(demand.staged, config::environment_name(dataset)) != demand.staged.end();
}

}  // namespace

Result<> use_measured_demand(Context& context, const std::filesystem::path& runs, bench::AskedFor& asked) {
  if (asked.demand.bytes_per_second > 0) return {};
  const auto stored = bench::load_demand(runs);
  if (!stored) return stored.take_error();
  if (!*stored) return {};
  const bench::StoredDemand& demand = **stored;
  if (!is_of_dataset(demand, asked.dataset)) {
    const std::string of = demand.dataset.empty() ? join(demand.staged, ", ") : demand.dataset;
    tell(context, "spark-stage: the demand that was measured is of a job on " + of + ", not used for " +
                      printable(asked.dataset) + ": measure it with `bench demand`, or give --demand");
    return {};
  }
  asked.demand = demand.demand();
  return {};
}

void add_bench_demand(App& app, const Verb& bench, const std::shared_ptr<std::string>& runs) {
  const auto options = std::make_shared<DemandOptions>();
  Verb verb =
      app.verb_of(bench, "demand", "measure a job's read rate, for the verdict",
                  "  spark-stage run imagenet -- spark-stage bench demand -- python train.py\n"
                  "  spark-stage bench demand --dataset /data/set --for 5m -- ./job.sh\n\n"
                  "Runs COMMAND and counts its processes' reads. It should read a staged copy,\n"
                  "so that its own speed is measured and not the network's. After --for the\n"
                  "command is ended with SIGTERM. The next `spark-stage bench` takes the rate,\n"
                  "and the order in which large files were read, from this measurement.\n"
                  "A container that a daemon starts, as `docker run` does, is not counted.",
                  [=](Context& context) { return measure(context, *options, runs_folder(context, *runs)); });
  app.add_to_usage(verb, "-- COMMAND...");
  verb.option("--dataset", "NAME", options->dataset,
              "the dataset it reads, if 'run' did not stage it: a name\n"
              "from the config, VOLUME:PATH or a folder");
  verb.parsed("--for", "TIME", options->limit, parse_duration, "end the command after that long (2m)");
  verb.option("--json", "FILE", options->json_file,
              "write the measurement there; -: to stdout, after the\noutput of COMMAND");
  verb.option("--runs", "FOLDER", *runs, "where runs are kept");
}

}  // namespace spark::cli
