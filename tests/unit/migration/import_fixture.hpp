// A host that was set up by hand, imported.
#pragma once

#include <gtest/gtest.h>

#include "daemon/config/parse.hpp"
#include "migration/import.hpp"
#include "tests/support/host_by_hand.hpp"

namespace spark::host {

class ImportFixture : public ::testing::Test {
 protected:
  Imported import() { return import_configuration(host.root(), survey(host.root()), WallTime{}); }

  config::Config parsed(const Imported& imported) {
    const auto config = config::parse(imported.yaml, "imported.yaml");
    EXPECT_TRUE(config) << config.error().message() << "\n" << imported.yaml;
    return config.value_or(config::Config());
  }

  test::FakeSysfs host;
};

}  // namespace spark::host
