#include "fleet/transport/current_security.hpp"

#include <gtest/gtest.h>

#include "base/file.hpp"
#include "fleet/transport/key.hpp"
#include "tests/support/temp_folder.hpp"

using namespace spark;
using namespace spark::fleet;

namespace {

class CurrentSecurityTest : public testing::Test {
 protected:
  const spark::test::TempFolder folder_;
  const std::filesystem::path file_ = folder_ / "key";
  const std::string first_ = new_key().value(), second_ = new_key().value();
  CurrentSecurity current_{Security::make(first_, "nqn.host").value(), file_};

  void write(const std::string& key) { ASSERT_TRUE(write_file_atomically(file_, key + "\n", 0600)); }
};

TEST_F(CurrentSecurityTest, AnotherKeyInTheFileIsUsedFromThenOn) {
  write(second_);
  const auto denied = current_.get();
  EXPECT_EQ(denied->key(), first_);
  const auto now = current_.instead_of(*denied);
  ASSERT_TRUE(now);
  EXPECT_EQ(now->key(), second_);
  EXPECT_EQ(now->identity(), "nqn.host");
  EXPECT_EQ(current_.get(), now);
  EXPECT_EQ(current_.instead_of(*denied), now) << "for a thread that was denied before";
  EXPECT_FALSE(current_.instead_of(*now));
}

TEST_F(CurrentSecurityTest, TheKeyStaysIfTheFileHasNoOther) {
  const auto denied = current_.get();
  EXPECT_FALSE(current_.instead_of(*denied)) << "there is no file";
  write(first_);
  EXPECT_FALSE(current_.instead_of(*denied));
  write("no key");
  EXPECT_FALSE(current_.instead_of(*denied));
  EXPECT_EQ(current_.get(), denied);
}

TEST_F(CurrentSecurityTest, WithoutAFileTheKeyStays) {
  CurrentSecurity fixed(Security::make(first_, "nqn.host").value());
  EXPECT_FALSE(fixed.instead_of(*fixed.get()));
}

}  // namespace
