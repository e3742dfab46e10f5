// Copies to volumes whose workers are scripts.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/outputs/stage_outs.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"

namespace spark::outputs {

inline constexpr char kSent[] =
    R"(echo '{"result": {"state": "ready", "path": "/v/x", "served_from": "copied", "bytes": 5, "files": 1}}')";
inline constexpr char kTrouble[] =
    R"(echo '{"error": {"kind": "unavailable", "what": "writing /v/x: Input/output error", "hint": ""}}')";
inline constexpr char kFull[] =
    R"(echo '{"error": {"kind": "no_space", "what": "there is no room", "hint": "free some"}}')";
inline constexpr char kHangs[] = "read -r request; sleep 60";

class StageOutsTest : public testing::Test {
 protected:
  StageOutsTest() {
    worker.on("flush-source", note_request("flushes.log") + R"(echo '{"result": {}}')");
    worker.on("record", note_request("records.log") + R"(echo '{"result": {}}')");
    worker.on("forget", R"(echo '{"result": {}}')");
    worker.on("recorded", R"(echo '{"result": {"records": []}}')");
    worker.on("stage-out", note_request("stage-outs.log") + kSent);
    worker.on("prune-output", note_request("prunes.log") + R"(echo '{"result": {"removed": ["step-0"]}}')");
    outs.emplace(Context{context.get_executor(), runner, clock, "/state/stage-outs",
                         [this]() -> const config::Config& { return settings; },
                         [this](const std::string&) { return place(); },
                         [this](const std::string&) { return place(); }, [] { return false; },
                         [this](const std::string& volume, const std::string& folder) {
                           return in_use(volume, folder);
                         },
                         Timings{.look = Duration(10),
                                 .retry = Duration(10),
                                 .tries = 3,
                                 .stuck = Duration(300),
                                 .stalled = Duration(200),
                                 .shards = Duration(10)}},
                 jobs);
  }
  Result<std::vector<std::string>> in_use(const std::string& volume, const std::string& folder) const {
    EXPECT_EQ(volume + ":" + folder, "checkpoints:run");
    if (!used) return fail(Errc::Unavailable, "the leases of this host are not known yet");
    return *used;
  }
  Result<VolumePlace> place() const {
    if (away) return fail(*away);
    return VolumePlace{"/v", "/v"};
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
  std::string text_of(const std::string& file) {
    std::ifstream in(worker.folder() / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  ScriptedWorker worker;
  asio::io_context context;
  SystemClock clock;
  workers::Runner runner{context.get_executor(), worker.program()};
  Jobs jobs{context.get_executor(), clock};
  config::Config settings;
  std::optional<Error> away;
  std::optional<std::vector<std::string>> used{std::in_place};  // names of copies; none: not known
  std::optional<StageOuts> outs;
};

}  // namespace spark::outputs
