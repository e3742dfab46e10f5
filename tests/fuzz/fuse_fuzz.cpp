// What the kernel may send to a live view: never a crash, and one answer to each request that needs one.
#include <linux/fuse.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "staging/view/fuse/fuse_view.hpp"

using namespace spark::staging;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A tree with a folder, a file of which half is there, one that is complete, and a symlink.
struct World {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fuse_fuzz-" + std::to_string(::getpid()));
  ViewPlace place{folder, "set"};
  std::unique_ptr<ViewMap> map;
  std::optional<ViewTree> tree;
  std::optional<ViewReader> reader;

  World() {
    std::filesystem::create_directories(folder / "data/a");
    Manifest manifest;
    const auto add = [&](const char* path, EntryType type, spark::Bytes size) {
      Entry& entry = manifest.entries.emplace_back();
      entry.path = path;
      entry.type = type;
      entry.size = size;
    };
    add("", EntryType::Folder, 0);
    add("a", EntryType::Folder, 0);
    add("a/large", EntryType::File, 9 * spark::kMiB);
    add("s", EntryType::Symlink, 0);
    add("t", EntryType::File, 1);
    require(write_manifest(folder / "entries", manifest).has_value());
    std::ofstream(folder / "data/t") << 'x';
    auto made = ViewMap::make(place, Digest{}, 10, (folder / "data").native());
    require(made.has_value());
    map = std::move(*made);
    tree = std::move(*ViewTree::read(folder / "entries"));
    map->set_here({0, 8});
    map->set_here({9, 1});
    reader.emplace(*tree, *map);
  }
  ~World() {
    ViewMap::remove(place);
    std::filesystem::remove_all(folder);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;
  static const IoBuffer buffer(kReadBuffer);
  unsigned answers = 0;
  FuseView view(
      *world.tree, *world.map, *world.reader,
      [&](const FuseMessage& message) {
        fuse_out_header head{};
        std::memcpy(&head, message.head.data(), sizeof head);
        require(head.len == sizeof head + message.bytes.size());
        require(head.error <= 0 && head.error > -4096);
        require(message.bytes.size() <= kMostRead);
        ++answers;
      },
      [](pid_t thread) { return thread % 2 != 0; },
      Backings{[](int file) { return file >= 0 ? 7U : 0U; },
               [](std::uint32_t number) { require(number == 7); }});
  view.answer(std::as_bytes(std::span(data, size)), buffer);
  if (size < sizeof(fuse_in_header)) return 0;
  fuse_in_header head{};
  std::memcpy(&head, data, sizeof head);
  const bool needs_none = head.opcode == FUSE_FORGET || head.opcode == FUSE_BATCH_FORGET;
  require(answers + view.waiting() == (needs_none ? 0U : 1U));
  view.settle(buffer, true);
  require(answers + view.waiting() == (needs_none ? 0U : 1U));
  return 0;
}
