#include "fleet/board/board.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <span>
#include <thread>

#include "tests/support/temp_folder.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::test::TempFolder;
using namespace std::chrono_literals;

namespace {

const std::string kSet = "p" + std::string(32, 'a');
constexpr BoardSize kSize{5, 3, 4};

TEST(Board, TheServerSeesTheUnitsOfTheWorker) {
  const TempFolder folder;
  const auto worker = Board::create(folder.path(), kSet, "/cache/x", kSize).value();
  const auto server = Board::open(folder.path(), kSet).value();
  EXPECT_EQ(server->data(), "/cache/x");
  EXPECT_EQ(server->unit(2), UnitState::Absent);
  worker->set_digest(2, {1, 2});
  worker->set_unit(2, UnitState::HasPiece);
  EXPECT_EQ(server->unit(2), UnitState::HasPiece);
  EXPECT_EQ(server->digest(2), (staging::Digest{1, 2}));
  EXPECT_FALSE(server->small_digest(3));
  worker->set_small_digest(3, {3, 4});
  EXPECT_EQ(server->small_digest(3), (staging::Digest{3, 4}));
  EXPECT_TRUE(server->is_alive());
  EXPECT_FALSE(server->is_done());
}

TEST(Board, TheServerSeesHowTheWorkerReadsItsSource) {
  const TempFolder folder;
  const auto worker = Board::create(folder.path(), kSet, "/x", kSize).value();
  const auto server = Board::open(folder.path(), kSet).value();
  EXPECT_EQ(server->reads(), SetState::Reads::Normally);
  worker->set_reads(SetState::Reads::Slowly);
  EXPECT_EQ(server->reads(), SetState::Reads::Slowly);
}

TEST(Board, TheWorkerSeesTheHostsThatAskTheServer) {
  const TempFolder folder;
  const auto worker = Board::create(folder.path(), kSet, "/x", kSize).value();
  const auto server = Board::open(folder.path(), kSet).value();
  server->note_member(7);
  server->note_member(8);
  server->note_member(7);
  EXPECT_EQ(worker->members(), (std::vector<NodeId>{7, 8}));
}

TEST(Board, AnEndedWorkerIsNoticedImmediately) {
  const TempFolder folder;
  auto worker = Board::create(folder.path(), kSet, "/x", kSize).value();
  const auto server = Board::open(folder.path(), kSet).value();
  EXPECT_TRUE(server->is_alive());
  worker.reset();
  EXPECT_FALSE(server->is_alive());
}

TEST(Board, ASetHasOnlyOneWorkerAtATime) {
  const TempFolder folder;
  auto first = Board::create(folder.path(), kSet, "/x", kSize).value();
  EXPECT_EQ(Board::create(folder.path(), kSet, "/x", kSize).error().kind, Errc::Unavailable);
  first.reset();
  EXPECT_TRUE(Board::create(folder.path(), kSet, "/x", kSize));
}

// A server would take it for the list of the new board, which has the same name.
TEST(Board, ANewBoardHasNoListOfAnEarlierWorker) {
  const TempFolder folder;
  ASSERT_TRUE(write_file_atomically(Board::entries_of(folder.path(), kSet), "x"));
  const auto worker = Board::create(folder.path(), kSet, "/x", kSize).value();
  EXPECT_FALSE(std::filesystem::exists(Board::entries_of(folder.path(), kSet)));
}

TEST(Board, TheListOfARunningWorkerStaysWhenAnotherOneBegins) {
  const TempFolder folder;
  const auto worker = Board::create(folder.path(), kSet, "/x", kSize).value();
  ASSERT_TRUE(write_file_atomically(Board::entries_of(folder.path(), kSet), "x"));
  EXPECT_FALSE(Board::create(folder.path(), kSet, "/x", kSize));
  EXPECT_TRUE(std::filesystem::exists(Board::entries_of(folder.path(), kSet)));
}

TEST(Board, AMissingOrTruncatedBoardIsNotFound) {
  const TempFolder folder;
  EXPECT_EQ(Board::open(folder.path(), kSet).error().kind, Errc::NotFound);
  const auto cut = write_file_atomically(Board::path_of(folder.path(), kSet), std::string(50, 'x'));
  ASSERT_TRUE(cut);
  EXPECT_EQ(Board::open(folder.path(), kSet).error().kind, Errc::NotFound);
}

// A file that was last written ten minutes ago.
void leave_old_file(const std::filesystem::path& path) {
  ASSERT_TRUE(write_file_atomically(path, "x"));
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - 10min);
}

TEST(Board, FilesOfKilledWorkersAreDeletedWhenTheNextStagingBegins) {
  const TempFolder folder;
  const std::string killed = "p" + std::string(32, 'b');
  const std::filesystem::path files[] = {Board::entries_of(folder.path(), killed),
                                         Board::notes_of(folder.path(), killed),
                                         folder / (killed + ".entries.new"),
                                         folder / (killed + ".notes.77.new"),
                                         folder / "silent.77.new",
                                         folder / (killed + ".board")};
  for (const auto& file : files) leave_old_file(file);
  ASSERT_TRUE(Board::create(folder.path(), kSet, "/x", kSize));
  for (const auto& file : files) EXPECT_FALSE(std::filesystem::exists(file)) << file;
}

TEST(Board, TheFilesOfARunningStagingStayHoweverOldTheyAre) {
  const TempFolder folder;
  const std::string running = "p" + std::string(32, 'c');
  const auto worker = Board::create(folder.path(), running, "/x", kSize).value();
  const std::filesystem::path files[] = {
      Board::path_of(folder.path(), running), Board::entries_of(folder.path(), running),
      Board::notes_of(folder.path(), running), folder / (running + ".entries.new")};
  for (const auto& file : std::span(files).subspan(1)) leave_old_file(file);
  std::filesystem::last_write_time(files[0], std::filesystem::file_time_type::clock::now() - 10min);
  ASSERT_TRUE(Board::create(folder.path(), kSet, "/x", kSize));
  for (const auto& file : files) EXPECT_TRUE(std::filesystem::exists(file)) << file;
}

TEST(Board, WorkersThatEndTakeNoBoardFromThoseThatBegin) {
  const TempFolder folder;
  std::atomic<unsigned> failures{0}, elsewhere{0};
  const auto work = [&](char letter) {
    const std::string set = "p" + std::string(32, letter);
    for (int i = 0; i < 300; ++i) {
      const auto board = Board::create(folder.path(), set, "/x", kSize);
      failures += board ? 0 : 1;
      if (!board) continue;
      elsewhere += Board::open(folder.path(), set) ? 0 : 1;  // the server looks for it in the usual place
      (*board)->remove();
    }
  };
  std::thread workers[] = {std::thread(work, 'a'), std::thread(work, 'b'), std::thread(work, 'c')};
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(failures, 0u);
  EXPECT_EQ(elsewhere, 0u);
}

TEST(Board, NewFilesAndThoseThatBelongToNoStagingStay) {
  const TempFolder folder;
  const auto starting = Board::entries_of(folder.path(), "p" + std::string(32, 'd'));
  ASSERT_TRUE(write_file_atomically(starting, "x"));
  for (const char* name : {"peers", "nodes"}) leave_old_file(folder / name);
  ASSERT_TRUE(Board::create(folder.path(), kSet, "/x", kSize));
  EXPECT_TRUE(std::filesystem::exists(starting));
  for (const char* name : {"peers", "nodes"}) EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
}

// 0: the board of many small files was made with this much memory for boards, and found; -1: not allowed
// here.
int make_with_memory_of(const char* memory) {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/dev/shm", "tmpfs", 0, memory) != 0)
      ::_exit(77);
    const auto board = Board::create(folder.path(), kSet, "/x", {100'000, 0, 100'000});
    if (!board) ::_exit(1);
    (*board)->set_small_digest(99'999, {1, 2});
    const auto found = Board::open(folder.path(), kSet);
    if (!found || !(*found)->is_alive() || !(*found)->small_digest(99'999)) ::_exit(2);
    if (Board::create(folder.path(), kSet, "/x", kSize)) ::_exit(3);
    (*board)->remove();
    ::_exit(Board::open(folder.path(), kSet) ? 4 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status)) return status;
  return WEXITSTATUS(status) == 77 ? -1 : WEXITSTATUS(status);
}

TEST(Board, IsOnTheDriveIfItsMemoryIsTooSmall) {
  for (const char* memory : {"size=1m", "size=64m"}) {
    const int made = make_with_memory_of(memory);
    if (made < 0) GTEST_SKIP() << "no mount namespace may be made here";
    EXPECT_EQ(made, 0) << memory;
  }
}

}  // namespace
