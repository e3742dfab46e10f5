// Copies to volumes whose workers are scripts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/daemon/outputs/outputs_fixture.hpp"

namespace spark::outputs {

inline constexpr char kSent[] =
    R"(echo '{"result": {"state": "ready", "path": "/v/x", "served_from": "copied", "bytes": 5, "files": 1}}')";
inline constexpr char kTrouble[] =
    R"(echo '{"error": {"kind": "unavailable", "what": "writing /v/x: Input/output error", "hint": ""}}')";
inline constexpr char kFull[] =
    R"(echo '{"error": {"kind": "no_space", "what": "there is no room", "hint": "free some"}}')";
inline constexpr char kHangs[] = "read -r request; sleep 60";

class StageOutsTest : public OutputsTest {
 protected:
  StageOutsTest()
      : OutputsTest(Timings{.look = Duration(10),
                            .retry = Duration(10),
                            .tries = 3,
                            .stuck = Duration(300),
                            .stalled = Duration(200),
                            .shards = Duration(10)}) {
    worker.on("stage-out", note_request("stage-outs.log") + kSent);
    worker.on("prune-output", note_request("prunes.log") + R"(echo '{"result": {"removed": ["step-0"]}}')");
  }
  Result<Names> in_use(const std::string& volume, const std::string& folder) const override {
    EXPECT_EQ(volume + ":" + folder, "checkpoints:run");
    if (!used) return fail(Errc::Unavailable, "the leases of this host are not known yet");
    return *used;
  }
  static StageOutRequest request(const std::string& path = "run/step-1",
                                 const std::string& source = "/out/step-1") {
    StageOutRequest wanted;
    wanted.source = source;
    wanted.volume = "checkpoints";
    wanted.path = path;
    wanted.asker.uid = 1000;
    return wanted;
  }
  // Of the output run7, of which one copy is kept, by this rule of completeness.
  StageOutRequest request_of_output(const std::string& rule) {
    config::Output& output = settings.outputs["run7"];
    output.volume = "checkpoints";
    output.to = "run";
    output.keep = 1;
    StageOutRequest wanted = request();
    wanted.rule = rule;
    return wanted;
  }
  std::shared_ptr<Job> send(StageOutRequest wanted = request()) {
    auto job = await(context, outs->send(std::move(wanted)));
    EXPECT_TRUE(job && *job) << (*job ? "" : job->error().message());
    return job && *job ? **job : nullptr;
  }
  bool ends(const std::shared_ptr<Job>& job) {
    return run_until(context, [&] { return !job->is_running(); });
  }
  static std::string error_of(const std::shared_ptr<Job>& job) {
    return json::serialize(job->to_json()["error"]);
  }

  std::optional<Names> used{std::in_place};  // none: not known
};

}  // namespace spark::outputs
