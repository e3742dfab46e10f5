// A file of an adopted folder that its drive can't read.
#include <gmock/gmock.h>
#include <sys/syscall.h>

#include <cerrno>

#include "fleet/adopted/verify_folder.hpp"
#include "fleet/serve/offer.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/unit/fleet/adopted/adopted_fixture.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;
using testing::HasSubstr;

namespace {

class UnreadableTest : public AdoptedFixture {
 protected:
  Adoption adoption_{adopted_, state_dir_, clock_};

  // In a child: no read of a file's content is answered.
  static int with_errors(const std::function<int()>& work) {
    static constexpr int kReads[] = {SYS_pread64};
    const auto lost = [](const spark::test::FileCall&) -> std::optional<long> { return -EIO; };
    const auto child = [&] { return spark::test::intercept_calls(kReads, lost).empty() ? work() : 10; };
    return staging::test::run_and_kill(child, std::chrono::seconds(60));
  }
  // As for a peer. 0: it was sent. A pack has the small files.
  int send(bool is_pack) const {
    const auto offered = offer_of_folder(adopted_, offer(), "");
    if (!offered) return 9;
    const std::uint64_t unit = is_pack ? (*offered)->state().unit_count - 1 : 0;
    return (*offered)->read(unit, staging::IoBuffer(kUnitBuffer)) ? 0 : 1;
  }
  void look_often() {
    for (int i = 0; i < 5; ++i) {
      look(adoption_);
      clock_.now += Adoption::kAgain;
    }
  }
  Result<VerifiedFolder> verify() { return verify_folder(adopted_, state_dir_, false, {}, stop_); }
};

TEST_F(UnreadableTest, AFileThatCanNotBeReadForAPeerEndsTheOfferUntilAVerificationReadsIt) {
  for (const bool is_pack : {false, true}) {
    const std::string file = is_pack ? "sub/small" : "large";
    adopt(adoption_);
    EXPECT_EQ(with_errors([&] { return send(is_pack); }), 1);
    look_often();
    EXPECT_EQ(adoption_.state(), AdoptionState::Failed) << "peers would wait without end";
    EXPECT_THAT(adoption_.reason(), HasSubstr(file + " (Input/output error)"));
    EXPECT_FALSE(std::filesystem::exists(offer()));
    EXPECT_TRUE(verify());
    look(adoption_);
    EXPECT_EQ(adoption_.state(), AdoptionState::Offered) << adoption_.reason();
    EXPECT_EQ(send(is_pack), 0);
  }
}

TEST_F(UnreadableTest, VerifyNamesWhatCanNotBeReadAndWithdrawsIt) {
  adopt(adoption_);
  const auto child = [&] {
    const auto verified = verify();
    if (verified || verified.error().kind != Errc::Mismatch) return 11;
    return verified.error().what.find("large (Input/output error)") == std::string::npos ? 12 : 0;
  };
  EXPECT_EQ(with_errors(child), 0) << "11: it is no damage; 12: the file is not named";
  EXPECT_FALSE(std::filesystem::exists(offer()));
  look_often();
  EXPECT_EQ(adoption_.state(), AdoptionState::Failed);
  EXPECT_EQ(with_errors(child), 0) << "again, without an offer";
  EXPECT_TRUE(verify());
}

// Whatever the reason is, peers do not wait for an offer that comes and goes.
TEST_F(UnreadableTest, AnOfferThatEndsAgainAndAgainWithoutAChangeHasFailed) {
  adopt(adoption_);
  for (int i = 0; i < 2; ++i) {
    set_aside(offer());
    look(adoption_);
    EXPECT_EQ(adoption_.state(), AdoptionState::Offered);
  }
  set_aside(offer());
  look(adoption_);
  EXPECT_EQ(adoption_.state(), AdoptionState::Failed);
  EXPECT_THAT(adoption_.reason(), HasSubstr("could not be sent"));
  EXPECT_FALSE(std::filesystem::exists(offer()));
  clock_.now += Adoption::kAgain;
  look(adoption_);
  EXPECT_EQ(adoption_.state(), AdoptionState::Offered) << "it is tried again";
}

TEST_F(UnreadableTest, AVerificationEndsTheDelayAndRareErrorsAreNone) {
  adopt(adoption_);
  const auto end_it = [&] {
    set_aside(offer());
    look(adoption_);
    return adoption_.state();
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(end_it(), AdoptionState::Offered) << i;
    clock_.now += Adoption::kAgain + std::chrono::seconds(1);
  }
  for (int i = 0; i < 3; ++i) end_it();
  EXPECT_EQ(adoption_.state(), AdoptionState::Failed);
  EXPECT_TRUE(verify());
  look(adoption_);
  EXPECT_EQ(adoption_.state(), AdoptionState::Offered);
}

}  // namespace
