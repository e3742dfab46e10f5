#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>

#include "base/file.hpp"
#include "tests/histories/engine/history.hpp"
#include "tests/histories/engine/program.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::histories {
namespace {

// Breaks its promise if it is opened, and pushed later with an even die; throws if it is hit.
class Door final : public World {
 public:
  Door(std::uint64_t seed, const Story& story) : story_(story), is_loose_(seed % 2 == 1) {}

  void take(const Step& step) override {
    if (step.action == "hit") throw std::runtime_error("a hole");
    if (step.action == "open") is_open_ = true;
    if (step.action == "push" && is_open_ && is_loose_ && step.dice[0] % 2 == 0) has_fallen_ = true;
    story_.tell(step.action);
  }
  std::optional<Violation> check() override {
    if (has_fallen_) return Violation{"stands", "the door has fallen"};
    return std::nullopt;
  }
  std::optional<Violation> settle() override { return check(); }
  Duration elapsed() const override { return Duration(1000); }

 private:
  const Story& story_;
  bool is_loose_, is_open_ = false, has_fallen_ = false;
};

Area doors(unsigned hits = 0) {
  Area area{"doors", {{"open", 1}, {"push", 2}, {"look", 5}}, 30, {}};
  if (hits > 0) area.actions.push_back({"hit", hits});
  area.make = [](std::uint64_t seed, const Story& story) { return std::make_unique<Door>(seed, story); };
  return area;
}

// The first seed whose history breaks the promise.
History broken(const Area& area) {
  for (std::uint64_t seed = 1;; ++seed) {
    const History history = generate(area, seed);
    if (run(area, history).violation) return history;
  }
}

TEST(History, OfASeedIsAlwaysTheSame) {
  const Area area = doors();
  EXPECT_EQ(generate(area, 7), generate(area, 7));
  EXPECT_NE(generate(area, 7), generate(area, 8));
  for (std::uint64_t seed = 1; seed < 100; ++seed) {
    const auto length = generate(area, seed).steps.size();
    EXPECT_GE(length, 10U);
    EXPECT_LE(length, 30U);
  }
}

TEST(History, ActionsAreDrawnByTheirWeight) {
  const Area area = doors();
  std::map<std::string, int> drawn;
  for (std::uint64_t seed = 1; seed < 500; ++seed) {
    for (const Step& step : generate(area, seed).steps) ++drawn[step.action];
  }
  EXPECT_GT(drawn["push"], drawn["open"] * 3 / 2);
  EXPECT_GT(drawn["look"], drawn["push"] * 2);
}

TEST(History, ShrinksToTheStepsThatAreNeeded) {
  const Area area = doors();
  const History shrunk = shrink(area, broken(area), "stands");
  ASSERT_EQ(shrunk.steps.size(), 2U);
  EXPECT_EQ(shrunk.steps[0], (Step{"open", {}}));
  EXPECT_EQ(shrunk.steps[1], (Step{"push", {}}));
  EXPECT_EQ(shrunk.seed % 2, 1U);
}

TEST(History, ShrinkingKeepsTheOracle) {
  const Area area = doors(1);
  History history{1, {{"hit", {}}, {"open", {}}, {"push", {}}}};
  EXPECT_EQ(shrink(area, history, "exception").steps, (std::vector<Step>{{"hit", {}}}));
}

TEST(History, AnExceptionIsAViolation) {
  const Outcome outcome = run(doors(1), {1, {{"look", {}}, {"hit", {}}, {"look", {}}}});
  ASSERT_TRUE(outcome.violation);
  EXPECT_EQ(outcome.violation->oracle, "exception");
  EXPECT_EQ(outcome.violation->what, "a hole");
  EXPECT_EQ(outcome.taken, 2U);
}

TEST(History, EndsWithTheStepThatBreaksAPromise) {
  const Outcome outcome = run(doors(), {1, {{"open", {}}, {"push", {}}, {"look", {}}}});
  EXPECT_EQ(outcome.taken, 2U);
}

TEST(History, SurvivesItsTextForm) {
  const History history = generate(doors(), 7);
  const auto again = from_text("# a comment\n" + to_text(history));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, history);
  for (const char* bad : {"", "open 1 2 3 4\n", "seed\n", "seed 1\nopen 1 2\n", "seed 1\nopen 1 2 3 x\n"})
    EXPECT_FALSE(from_text(bad)) << bad;
}

class HistoryProgram : public testing::Test {
 protected:
  int run_with(std::vector<std::string> arguments, const Area& area = doors()) {
    arguments.insert(arguments.begin(), {"doors", "--found", (folder_.path() / "found").native(), "--out",
                                         (folder_.path() / "out").native()});
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    return history_main(area, static_cast<int>(pointers.size()), pointers.data());
  }
  void put(const std::string& name, const std::string& comments, const History& history) {
    std::ofstream(folder_.path() / "found" / name) << comments << to_text(history);
  }
  std::vector<std::filesystem::path> written() {
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "out", none))
      files.push_back(entry.path());
    return files;
  }
  void SetUp() override { std::filesystem::create_directories(folder_.path() / "found"); }

  const History falls_{1, {{"open", {}}, {"push", {}}}}, stands_{2, {{"open", {}}, {"push", {}}}};
  test::TempFolder folder_;
};

TEST_F(HistoryProgram, FailsIfAPromiseIsBrokenAndWritesTheShrunkHistory) {
  EXPECT_EQ(run_with({"--count", "100"}), 1);
  ASSERT_EQ(written().size(), 1U);
  EXPECT_EQ(run_with({"--replay", written().front().native()}), 1);
}

TEST_F(HistoryProgram, PassesIfNoneIs) {
  Area area = doors();
  area.actions = {{"look", 1}};
  EXPECT_EQ(run_with({"--count", "100"}, area), 0);
  EXPECT_TRUE(written().empty());
}

TEST_F(HistoryProgram, ToleratesAnOpenDefectAsLongAsItIsThere) {
  put("falls.history", "# oracle: stands\n# open: issue 7\n", falls_);
  EXPECT_EQ(run_with({"--count", "100"}), 0);
  EXPECT_EQ(run_with({"--count", "100"}, doors(1)), 1) << "another promise is broken";
  put("stands.history", "# oracle: stands\n# open: issue 8\n", stands_);
  EXPECT_EQ(run_with({"--count", "0"}), 1) << "a defect that is not there any more";
}

TEST_F(HistoryProgram, FailsIfAFixedDefectIsBack) {
  put("stands.history", "# oracle: stands\n# fixed: in 0.3\n", stands_);
  EXPECT_EQ(run_with({"--count", "0"}), 0);
  put("falls.history", "# oracle: stands\n# fixed: in 0.3\n", falls_);
  EXPECT_EQ(run_with({"--count", "0"}), 1);
}

TEST_F(HistoryProgram, FailsIfTheStoryOfAFixedDefectDoesNotReachItsSentence) {
  put("stands.history", "# oracle: stands\n# fixed: in 0.3\n# reaches: pus\n# reaches: open\n", stands_);
  EXPECT_EQ(run_with({"--count", "0"}), 0);
  put("stands.history", "# oracle: stands\n# fixed: in 0.3\n# reaches: push\n# reaches: hit\n", stands_);
  EXPECT_EQ(run_with({"--count", "0"}), 1);
}

TEST_F(HistoryProgram, FailsIfAnOpenDefectClaimsTooManySeeds) {
  put("falls.history", "# oracle: stands\n# open: issue 7\n", falls_);
  EXPECT_EQ(run_with({"--count", "300"}), 1);
}

TEST(History, IsShrunkNoLongerThanAllowed) {
  const Area area = doors();
  const History history = broken(area);
  EXPECT_EQ(shrink(area, history, "stands", 3000, [] { return false; }), history);
}

TEST_F(HistoryProgram, RefusesAFileWithoutItsOracleOrItsState) {
  put("falls.history", "# open: issue 7\n", falls_);
  EXPECT_EQ(run_with({"--count", "0"}), 2);
  put("falls.history", "# oracle: stands\n", falls_);
  EXPECT_EQ(run_with({"--count", "0"}), 2);
}

TEST_F(HistoryProgram, RefusesAStepThatNoWorldKnows) {
  put("falls.history", "# oracle: stands\n# fixed: in 0.3\n", History{1, {{"slam", {}}}});
  EXPECT_EQ(run_with({"--count", "0"}), 2);
}

TEST_F(HistoryProgram, DoesNotTakeAMissingFileForASeed) {
  EXPECT_EQ(run_with({"--replay", "no-such-file.history"}), 2);
  EXPECT_EQ(run_with({"--replay", "7x"}), 2);
  EXPECT_EQ(run_with({"--replay", "2"}), 0);
}

TEST_F(HistoryProgram, FindsTheHistoryThatBreaksAGivenPromise) {
  EXPECT_EQ(run_with({"--find", "stands", "--count", "100"}), 0);
  EXPECT_EQ(written().size(), 1U);
  EXPECT_EQ(run_with({"--find", "another", "--count", "100"}), 1) << "not found";
}

}  // namespace
}  // namespace spark::histories
