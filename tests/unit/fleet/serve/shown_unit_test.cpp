#include "fleet/serve/shown_unit.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.hpp"

using namespace spark;
using namespace spark::fleet;

namespace {

class ShownUnitTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kPiece = 1, kPack = 2;
  static constexpr staging::Digest kDigest{1, 2};
  const std::string set_ = "p" + std::string(32, 'a');
  spark::test::TempFolder folder_;
  std::unique_ptr<Board> worker_ = Board::create(folder_.path(), set_, "/x", {3, 2, 1}).value();
  std::unique_ptr<Board> server_ = Board::open(folder_.path(), set_).value();

  ShownUnitTest() {
    worker_->set_digest(kPiece, kDigest);
    for (const std::uint64_t unit : {kPiece, kPack}) worker_->set_unit(unit, UnitState::HasPiece);
  }
  // `meanwhile` happens while the content is read.
  Result<UnitBody> read(
      std::uint64_t unit, const std::function<void()>& meanwhile = [] {}) const {
    return read_as_shown(*server_, unit, [&]() -> Result<UnitBody> {
      meanwhile();
      return UnitBody{};
    });
  }
};

TEST_F(ShownUnitTest, APieceHasItsDigestOrThatOfItsFile) {
  const auto piece = read(kPiece);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->piece, kDigest);
  EXPECT_FALSE(piece->file);
  worker_->set_unit(kPiece, UnitState::HasFile);
  const auto whole = read(kPiece);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->file, kDigest);
  EXPECT_FALSE(whole->piece);
}

TEST_F(ShownUnitTest, APackHasNoDigestOfItsOwn) {
  const auto pack = read(kPack);
  ASSERT_TRUE(pack);
  EXPECT_FALSE(pack->piece || pack->file);
}

TEST_F(ShownUnitTest, AUnitThatIsNotThereIsNotRead) {
  worker_->set_unit(kPiece, UnitState::Reading);
  const auto body = read(kPiece, [] { FAIL() << "it was read"; });
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().kind, Errc::NotFound);
}

TEST_F(ShownUnitTest, AUnitWithdrawnWhileItIsReadIsNotSent) {
  for (const std::uint64_t unit : {kPiece, kPack}) {
    const auto body = read(unit, [&] { worker_->set_unit(unit, UnitState::Absent); });
    ASSERT_FALSE(body) << unit;
    EXPECT_EQ(body.error().kind, Errc::NotFound);
  }
}

TEST_F(ShownUnitTest, APieceThatIsReplacedWhileItIsReadIsNotSent) {
  EXPECT_FALSE(read(kPiece, [&] { worker_->set_digest(kPiece, {3, 4}); }));
  EXPECT_FALSE(read(kPiece, [&] { worker_->set_unit(kPiece, UnitState::HasFile); }));
}

}  // namespace
