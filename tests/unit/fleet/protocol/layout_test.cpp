#include "fleet/protocol/layout.hpp"

#include <gtest/gtest.h>

using namespace spark;
using namespace spark::fleet;

namespace {

Layout layout_of(std::initializer_list<Bytes> sizes) {
  Layout layout;
  for (const Bytes size : sizes) layout.add(size);
  layout.finish();
  return layout;
}

TEST(Layout, ALargeFilesUnitsAreTheEnginesOwnPieces) {
  const Layout layout = layout_of({20 * kMiB, 1, 8 * kMiB + 1, 2 * kMiB});
  ASSERT_EQ(layout.pieces(), 3U + 2U + 1U);
  EXPECT_EQ(layout.piece(0).file, 0U);
  EXPECT_EQ(layout.piece(2).piece, 2U);
  EXPECT_EQ(layout.piece(4).file, 2U);
  EXPECT_EQ(layout.piece(4).piece, 1U);
  EXPECT_EQ(layout.piece(5).file, 3U);
  EXPECT_EQ(layout.first_unit_of(2), 3U);
}

TEST(Layout, SmallFilesArePackedInWalkOrderUpToTheSizeOfAPiece) {
  const Layout layout = layout_of({kMiB, 3 * kMiB, kMiB, kMiB, kMiB, kMiB, kMiB, kMiB, kMiB, kMiB, 5});
  ASSERT_EQ(layout.units(), 1U + 2U);
  ASSERT_TRUE(layout.is_pack(1));
  EXPECT_EQ(layout.pack(1).first, 0U);
  EXPECT_EQ(layout.pack(1).count, 8U);
  EXPECT_EQ(layout.pack(1).bytes, 8 * kMiB);
  EXPECT_EQ(layout.pack(2).first, 8U);
  EXPECT_EQ(layout.pack(2).count, 2U);
  EXPECT_EQ(layout.small(8), 9U);
  EXPECT_EQ(layout.small_of(9), 8U);
  EXPECT_EQ(layout.pack_of(0), 1U);
  EXPECT_EQ(layout.pack_of(8), 1U);
  EXPECT_EQ(layout.pack_of(9), 2U);
  EXPECT_EQ(layout.pack_of(10), 2U);
}

TEST(Layout, AMillionEmptyFilesDoNotBecomeOnePack) {
  Layout layout;
  for (std::uint64_t i = 0; i < 3 * kPackFiles; ++i) layout.add(0);
  layout.finish();
  EXPECT_EQ(layout.units(), 3U);
}

TEST(Layout, AnEmptySetHasNoUnits) {
  EXPECT_EQ(layout_of({}).units(), 0U);
}

}  // namespace
