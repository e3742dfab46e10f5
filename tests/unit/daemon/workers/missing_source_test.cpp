#include "daemon/workers/missing_source.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.hpp"

namespace spark::workers {
namespace {

const Error kMissing{Errc::NotFound, "opening the source: No such file or directory", ""};

TEST(MissingSource, NamesTheNearestFolderThatExists) {
  const test::TempFolder volume;
  const std::string lists = "`ls " + volume.path().native() + "` lists its contents";
  EXPECT_EQ(with_next_step(kMissing, volume / "no/such", PathFrom::Request).hint, lists);
  EXPECT_EQ(with_next_step(kMissing, volume / "imagenet", PathFrom::Config).hint,
            "check the dataset's path in the config; " + lists);
}

TEST(MissingSource, OtherErrorsStayUnchanged) {
  const test::TempFolder volume;
  EXPECT_EQ(with_next_step(kMissing, volume.path(), PathFrom::Request).hint, "") << "the source is there";
  const Error full{Errc::NoSpace, "writing", ""};
  EXPECT_EQ(with_next_step(full, volume / "no", PathFrom::Request).hint, "");
  const Error with_hint{Errc::NotFound, "opening", "try again"};
  EXPECT_EQ(with_next_step(with_hint, volume / "no", PathFrom::Request).hint, "try again");
}

}  // namespace
}  // namespace spark::workers
