// Sends a folder to a folder, as the worker of a daemon does.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/workers/verbs/verbs.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/tree.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::workers {

inline const ProgressLine kNoProgress = [](const json::object&) {};

// In the state that the source has now, unless the request has one.
inline Result<json::object> stage_out(json::object asked, const ProgressLine& progress) {
  const auto source = staging::open_tree(get_text(asked, "source"));
  if (source && !asked.contains("written")) asked["written"] = staging::totals_of(source->root()).written;
  return stage_out_verb(asked, progress);
}

class StageOutVerb : public testing::Test {
 protected:
  StageOutVerb() { staging::test::write_text(source_ / "shard", staging::test::noise(100'000, 1)); }
  json::object request() const {
    return {{"source", source_.native()},
            {"root", folder_.path().native()},
            {"mount", ""},
            {"path", "run/step-1"},
            {"uid", ::geteuid()},
            {"threads", 1},
            {"depth", 4},
            {"chunk", 1 << 20}};
  }

  staging::test::TempFolder folder_;
  const std::filesystem::path source_ = folder_ / "source", run_ = folder_ / "run";
};

}  // namespace spark::workers
