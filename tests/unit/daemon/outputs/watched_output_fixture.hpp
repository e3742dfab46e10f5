// A watched output whose folder and volume are scripts.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "daemon/outputs/output_watches.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"

namespace spark::outputs {

inline constexpr char kOneThere[] =
    R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-2", "mtime_ns": 20, "changed_ns": 21, "bytes": 5, "incomplete": ""},
       {"name": "step-1", "mtime_ns": 10, "changed_ns": 11, "bytes": 5, "incomplete": "it has no DONE yet"}]}}' | tr -d '\n'; echo)";

class WatchedOutputTest : public testing::Test {
 protected:
  WatchedOutputTest() {
    worker.on("recorded", R"(echo '{"result": {"records": []}}')");
    worker.on("record", note_request("records.log") + R"(echo '{"result": {}}')");
    worker.on("forget", R"(echo '{"result": {}}')");
    worker.on("flush-source", R"(echo '{"result": {}}')");
    worker.on("scan-output", note_request("scans.log") + kOneThere);
    worker.on("list-published", R"(echo '{"result": {"copies": []}}')");
    worker.on("prune-output", note_request("prunes.log") + R"(echo '{"result": {"removed": []}}')");
    worker.on("tidy-output", note_request("tidies.log") + R"(echo '{"result": {}}')");
    worker.on("stage-out", note_request("stage-outs.log") +
                               R"(echo '{"result": {"state": "ready", "served_from": "copied"}}')");
    config::Output output;
    output.name = "run7";
    output.path = "/out";
    output.volume = "checkpoints";
    output.to = "run7";
    output.complete = config::Complete::Marker;
    output.marker = "DONE";
    output.keep = 3;
    settings.outputs["run7"] = output;
    outs.emplace(Context{context.get_executor(), runner, clock, "/state/stage-outs",
                         [this]() -> const config::Config& { return settings; },
                         [this](const std::string&) { return place(); },
                         [this](const std::string&) { return readable(); }, [] { return false; },
                         [](const std::string&, const std::string&) {
                           return Result<std::vector<std::string>>(std::vector<std::string>{"step-0"});
                         },
                         Timings{.look = Duration(10),
                                 .retry = Duration(10),
                                 .tries = 1,
                                 .watch = Duration(20),
                                 .settle = Duration(10),
                                 .settle_looks = 3,
                                 .shards = Duration(10)}},
                 jobs);
    watches.emplace(outs->context(), *outs);
  }
  ~WatchedOutputTest() override {
    settings.outputs.clear();
    watches->apply(settings);
    run_until(context, [&] { return runner.counts().running == 0; });
  }
  Result<VolumePlace> place() const {
    if (away) return fail(*away);
    return VolumePlace{"/v", "/v"};
  }
  Result<VolumePlace> readable() const { return watched ? Result<VolumePlace>(*watched) : place(); }
  std::string text_of(const std::string& file) {
    std::ifstream in(worker.folder() / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool calls(const std::string& verb, int count) {
    return run_until(context, [&] { return worker.calls(verb) >= count; });
  }

  ScriptedWorker worker;
  asio::io_context context;
  SystemClock clock;
  workers::Runner runner{context.get_executor(), worker.program()};
  Jobs jobs{context.get_executor(), clock};
  config::Config settings;
  std::optional<Error> away;
  std::optional<VolumePlace> watched;  // where it is readable although it is away
  std::optional<StageOuts> outs;
  std::optional<OutputWatches> watches;
};

}  // namespace spark::outputs
