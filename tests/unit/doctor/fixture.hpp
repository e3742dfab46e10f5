// One run of doctor on a fake host, area by area.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_host.hpp"

namespace spark::doctor {

class Doctor : public ::testing::Test {
 protected:
  // The findings of one area: problem, reason and fix, separated by " | ".
  std::vector<std::string> found(const std::string& area) {
    std::vector<std::string> all;
    for (const Finding& finding : examine(fake.host()).findings) {
      if (finding.area != area) continue;
      all.push_back(finding.what + " | " + finding.why + " | " + finding.fix);
    }
    return all;
  }
  // Expects exactly one finding, with these words in it.
  void expect(const std::string& area, const std::vector<std::string>& words) {
    const auto all = found(area);
    ASSERT_EQ(all.size(), 1u) << join(all, "\n");
    for (const std::string& word : words) EXPECT_THAT(all.front(), ::testing::HasSubstr(word));
  }

  test::FakeHost fake;
};

}  // namespace spark::doctor
