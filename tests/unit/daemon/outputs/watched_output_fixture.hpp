// A watched output whose folder and volume are scripts.
#pragma once

#include <optional>
#include <string>

#include "daemon/outputs/watch/output_watches.hpp"
#include "tests/unit/daemon/outputs/outputs_fixture.hpp"

namespace spark::outputs {

inline constexpr char kOneThere[] =
    R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-2", "mtime_ns": 20, "written": 21, "bytes": 5, "incomplete": ""},
       {"name": "step-1", "mtime_ns": 10, "written": 11, "bytes": 5, "incomplete": "it has no DONE yet"}]}}' | tr -d '\n'; echo)";
inline constexpr char kTwoThere[] =
    R"(echo '{"result": {"uid": 1000, "checkpoints": [{"name": "step-3", "mtime_ns": 30, "written": 31,
       "bytes": 5, "incomplete": ""}, {"name": "step-2", "mtime_ns": 20, "written": 21, "bytes": 5,
       "incomplete": ""}]}}' | tr -d '\n'; echo)";

class WatchedOutputTest : public OutputsTest {
 protected:
  WatchedOutputTest()
      : OutputsTest(Timings{.look = Duration(10),
                            .retry = Duration(10),
                            .tries = 1,
                            .watch = Duration(20),
                            .settle = Duration(10),
                            .settle_looks = 3,
                            .shards = Duration(10),
                            .sign = Duration(10)}) {
    worker.on("scan-output", note_request("scans.log") + kOneThere);
    worker.on("list-published", R"(echo '{"result": {"copies": []}}')");
    worker.on("prune-output", note_request("prunes.log") + R"(echo '{"result": {"removed": []}}')");
    worker.on("tidy-output", note_request("tidies.log") + R"(echo '{"result": {"removed": ["step-2"]}}')");
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
    watches.emplace(outs->context(), *outs);
  }
  ~WatchedOutputTest() override {
    settings.outputs.clear();
    watches->apply(settings);
    run_until(context, [&] { return runner.counts().running == 0; });
  }
  Result<Names> in_use(const std::string& /*volume*/, const std::string& /*folder*/) const override {
    return Names{"step-0"};
  }
  Result<VolumePlace> readable() const override { return watched ? Result<VolumePlace>(*watched) : place(); }
  bool calls(const std::string& verb, int count) {
    return run_until(context, [&] { return worker.calls(verb) >= count; });
  }

  std::optional<VolumePlace> watched;  // where it is readable although it is away
  std::optional<OutputWatches> watches;
};

}  // namespace spark::outputs
