// The daemon's datasets with a worker program made of shell lines, and the test's own loop.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "daemon/datasets/datasets.hpp"
#include "daemon/workers/process_runner.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"

namespace spark::datasets {

inline constexpr char kRows[] =
    R"({"datasets": [{"name": "imagenet", "state": "ready", "path": "/c/1", "bytes": 5, "files": 1, "generation": 1,
                      "staged_at": "2026-01-01T00:00:00Z", "last_used": "2026-01-01T00:00:00Z"}],
        "usage": {"path": "/c", "capacity_bytes": 10, "used_bytes": 5, "free_bytes": 5}})";
inline constexpr char kStaged[] =
    R"({"result": {"path": "/c/1", "served_from": "copied", "generation": 1, "bytes": 5, "files": 1}})";

inline std::string one_line(std::string text) {
  std::erase(text, '\n');
  return text;
}

// Events of a worker.
inline constexpr char kBegun[] =
    R"(echo '{"progress": {"phase": "copying", "bytes_done": 5, "bytes_total": 9}}')";
inline constexpr char kMoved[] =
    R"(echo '{"progress": {"phase": "copying", "bytes_done": 7, "bytes_total": 9}}')";
inline constexpr char kTrouble[] =
    R"(echo '{"error": {"kind": "unavailable", "what": "reading /mnt/a: Input/output error", "hint": ""}}')";

inline std::string staged() {
  return std::string("echo '") + kStaged + "'";
}
inline std::string lines(std::initializer_list<std::string> all) {
  std::string script;
  for (const std::string& line : all) script += (script.empty() ? "" : "; ") + line;
  return script;
}

class DatasetsTest : public testing::Test {
 protected:
  DatasetsTest() {
    for (const char* name : {"imagenet", "models"}) {
      config::Dataset dataset;
      dataset.name = name;
      dataset.path = std::string("/data/") + name;
      settings.datasets[name] = dataset;
    }
    worker.on("catalog", "printf '%s\\n' '{\"result\": " + one_line(kRows) + "}'");
    worker.on("recover", R"(echo '{"progress": {"looked_over": true}}'; echo '{"result": {}}')");
    worker.on("lease", note_request("leases.log") + R"(echo '{"result": {"leases": []}}')");
    worker.on("stage", note_request("stages.log") + "echo '" + kStaged + "'");
    worker.on("evict", R"(echo '{"result": {"dataset": "imagenet", "freed_bytes": 5}}')");
  }
  void start() {
    begin();
    // The catalog is read after the check and after the recovery.
    ASSERT_TRUE(
        run_until(context, [&] { return datasets->list().has_value() && worker.calls("catalog") >= 2; }));
  }
  void begin() {
    Context parts{context.get_executor(),
                  runner,
                  clock,
                  "/state",
                  [this]() -> const config::Config& { return settings; },
                  [this](const config::Dataset& dataset) { return find_source(dataset); },
                  [this](const config::Dataset&) { return is_settling; },
                  timings,
                  [this](const config::Dataset&) { return may_be_back_soon; }};
    adjust(parts);
    datasets.emplace(std::move(parts), jobs);
    boost::asio::co_spawn(context, datasets->start(), boost::asio::detached);
  }
  virtual void adjust(Context& /*parts*/) {}
  Result<SourcePlace> find_source(const config::Dataset& dataset) const {
    if (source_error && away == dataset.name) return fail(*source_error);
    SourcePlace place{dataset.path, ""};
    place.is_at_peers = dataset.path.empty();
    if (!doubt.empty()) place.doubt = Doubt{doubt, doubt_passes};
    place.generation = generation;
    place.drive = dataset.volume;
    place.device = device;
    place.is_exchanged = !device.empty();
    return place;
  }
  std::shared_ptr<Job> stage(std::optional<std::chrono::seconds> lease = {}, pid_t pid = 0) {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.lease = lease;
    request.process = staging::process_with(pid);
    request.asker.holder = "a test";
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  std::shared_ptr<Job> stage_all(std::vector<std::string> names) {
    StageRequest request;
    request.datasets = std::move(names);
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  bool ends(const std::shared_ptr<Job>& job) {
    return run_until(context, [&] { return !job->is_running(); });
  }
  json::object row_of(const std::string& dataset) {
    const auto list = datasets->list();
    for (const auto& row : *get_array(*list, "datasets")) {
      if (get_string(row.as_object(), "name") == dataset) return row.as_object();
    }
    return {{"state", "not listed"}};
  }
  std::string state_of(const std::string& dataset) {
    return get_string(row_of(dataset), "state").value_or("none");
  }
  static std::string kind_of(const std::shared_ptr<Job>& job) {
    const auto event = job->final_event();
    const json::object* error = get_object(event, "error");
    return error == nullptr ? "done" : get_string(*error, "kind").value_or("");
  }
  std::string text_of(const std::string& file) {
    std::ifstream in(worker.folder() / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  ScriptedWorker worker;
  boost::asio::io_context context;
  SystemClock clock;
  workers::ProcessRunner runner{context.get_executor(), worker.program()};
  Jobs jobs{context.get_executor(), clock};
  config::Config settings;
  std::string doubt;  // for every source
  bool doubt_passes = false;
  std::uint64_t generation = 0;  // of every source's volume
  std::string device;            // of every source's volume; empty: it is not exchanged with peers
  std::optional<Error> source_error;
  std::string away = "imagenet";  // the dataset that source_error applies to
  Timings timings{Duration(10),    3, Duration(10), Duration(200), Duration(300), Duration(20),
                  Duration(60'000)};
  bool is_settling = false, may_be_back_soon = false;
  std::optional<Datasets> datasets;
};

}  // namespace spark::datasets
