// Stage-outs to volumes whose workers are scripts, on the test's own loop.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/outputs/stage_outs.hpp"
#include "daemon/workers/process_runner.hpp"
#include "tests/support/run_on.hpp"
#include "tests/support/scripted_worker.hpp"

namespace spark::outputs {

class OutputsTest : public testing::Test {
 protected:
  using Names = std::vector<std::string>;  // of copies in use

  explicit OutputsTest(Timings timings) {
    worker.on("flush-source", note_request("flushes.log") + R"(echo '{"result": {"written": 7}}')");
    worker.on("record", note_request("records.log") + R"(echo '{"result": {}}')");
    worker.on("forget", R"(echo '{"result": {}}')");
    worker.on("recorded", R"(echo '{"result": {"records": []}}')");
    outs.emplace(Context{context.get_executor(), runner, clock, "/state/stage-outs",
                         [this]() -> const config::Config& { return settings; },
                         [this](const std::string&) { return place(); },
                         [this](const std::string&) { return readable(); }, [] { return false; },
                         [this](const std::string& volume, const std::string& folder) {
                           return in_use(volume, folder);
                         },
                         timings},
                 jobs);
  }
  virtual Result<Names> in_use(const std::string& volume, const std::string& folder) const = 0;
  virtual Result<VolumePlace> readable() const { return place(); }
  Result<VolumePlace> place() const {
    if (away) return fail(*away);
    return VolumePlace{"/v", "/v"};
  }
  std::string text_of(const std::string& file) const {
    std::ifstream in(worker.folder() / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  ScriptedWorker worker;
  asio::io_context context;
  SystemClock clock;
  workers::ProcessRunner runner{context.get_executor(), worker.program()};
  Jobs jobs{context.get_executor(), clock};
  config::Config settings;
  std::optional<Error> away;
  std::optional<StageOuts> outs;
};

}  // namespace spark::outputs
