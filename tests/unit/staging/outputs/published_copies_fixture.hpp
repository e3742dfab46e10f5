// Copies on a volume, sent one after the other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "staging/copy/copy_with.hpp"
#include "staging/outputs/published_copies.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {

// An error also if one could not be deleted.
inline Result<std::vector<RemovedCopy>> remove_older_copies(const std::filesystem::path& folder,
                                                            const Keep& keep) {
  PruneNotes notes;
  auto removed = staging::remove_older_copies(folder, keep, notes);
  if (removed && notes.failure) return fail(*notes.failure);
  return removed;
}

class PublishedCopies : public testing::Test {
 protected:
  // Each copy is 10 s newer than the previous one.
  void send(const std::string& name) {
    const auto source = folder_ / ("source/" + name);
    std::filesystem::create_directories(source);
    std::filesystem::create_directories(volume_);
    write_text(source / "shard", noise(100'000, ++sent_));
    std::filesystem::last_write_time(
        source, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(1000 - 10 * sent_));
    ASSERT_OK(copy(source, volume_ / name, {}, kQuiet, stop_));
  }
  // Ends after this step of its publishing, like a process that is killed.
  void send_until(const char* last, const std::string& name) {
    const auto source = folder_ / ("source/" + name);
    write_text(source / "shard", noise(100'000, ++sent_));
    std::filesystem::last_write_time(
        source, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(1000 - 10 * sent_));
    CopyHooks killed;
    killed.step = [last](const char* step) -> Result<> {
      if (std::string(last) != step) return {};
      return fail(Errc::Failed, "killed");
    };
    EXPECT_FALSE(copy_with(killed, source, volume_ / name, {}, kQuiet, stop_));
  }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    const auto copies = published_checkpoints(volume_);
    for (std::size_t i = 0; copies && i < copies->size(); ++i) all.push_back((*copies)[i].name);
    return all;
  }
  using Names = std::vector<std::string>;

  TempFolder folder_;
  std::filesystem::path volume_ = folder_ / "volume";
  std::uint64_t sent_ = 0;
  StopFlag stop_{false};
};

}  // namespace spark::staging::test
