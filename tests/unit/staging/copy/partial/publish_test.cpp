#include "staging/copy/partial/publish.hpp"

#include <gmock/gmock.h>
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

// A thread that loses a file, for one, must not become a dataset that lacks it.
TEST(SealTest, ACopyThatLacksAFileIsNotSealed) {
  const TempFolder folder;
  const StopFlag stop{false};
  auto area = PartialArea::open(folder / "partial", stop);
  ASSERT_OK(area);
  write_text(area->data() / "here", "here");
  Manifest manifest;
  manifest.entries.resize(3);
  manifest.entries[0].type = EntryType::Folder;
  manifest.entries[1].path = "here";
  manifest.entries[1].hash = {1, 2};
  manifest.entries[2].path = "lost";
  const auto sealed = seal(*area, manifest);
  ASSERT_FALSE(sealed);
  EXPECT_THAT(sealed.error().what, testing::HasSubstr("lost was not copied"));
  EXPECT_FALSE(std::filesystem::exists(area->manifest()));

  manifest.entries[2].hash = {3, 4};
  ASSERT_OK(seal(*area, manifest));
}

}  // namespace
}  // namespace spark::staging
