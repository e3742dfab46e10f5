// Which units readers wait for.
#include "fleet/backlog/wanted_units.hpp"

#include <gtest/gtest.h>

#include <deque>

using namespace spark;
using namespace spark::fleet;

namespace {

struct WantingReader final : staging::Viewer {
  std::deque<staging::WantedOfFile> wanted;

  bool begin(const staging::Entries&, bool, const std::string&) override { return true; }
  void arrived(const staging::Entry&, const staging::UnitRange&) override {}
  void withdraw(const staging::Entry&, bool) override {}
  void published(const std::filesystem::path&, const std::filesystem::path&) override {}
  std::optional<staging::WantedOfFile> take_wanted(bool is_small) override {
    if (wanted.empty() || is_small != (wanted.front().entry->size <= kPackedFile)) return std::nullopt;
    const auto first = wanted.front();
    wanted.pop_front();
    return first;
  }
};

// Built from the end: the blocks of a deque then descend in memory along its entries.
TEST(WantedUnits, AreFoundWhereverTheEntriesAreInMemory) {
  constexpr int kFiles = 400;
  staging::Entries entries;
  for (int i = kFiles; i-- > 0;) {
    staging::Entry entry;
    entry.path = "f" + std::to_string(1000 + i);
    entry.size = i % 2 == 0 ? 3 * staging::kHashPiece : kMiB / 2;
    entries.push_front(std::move(entry));
  }
  Layout layout;
  std::vector<staging::Entry*> entry_of;
  for (staging::Entry& entry : entries) {
    layout.add(entry.size);
    entry_of.push_back(&entry);
  }
  layout.finish();
  WantingReader reader;
  for (std::uint64_t file = 0; file < kFiles; ++file) {
    reader.wanted.push_back(
        {entry_of[file], Layout::is_packed(entry_of[file]->size) ? 0 : staging::kUnitsOfPiece});
    const auto unit = take_wanted_unit(reader, layout, entry_of);
    ASSERT_TRUE(unit) << file;
    EXPECT_EQ(unit->file, file);
    EXPECT_EQ(unit->unit, file % 2 == 0 ? layout.first_unit_of(file) + 1 : layout.pack_of(file));
  }
}

}  // namespace
