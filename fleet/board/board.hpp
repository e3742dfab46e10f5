// The progress of a staging worker on its set, in a file shared with the process that serves peers. Either
// process may be killed at any moment: all fields are written and read by single atomic operations. The file
// is in memory (/dev/shm): on a drive, a write to it waits while the file system commits, for seconds on a
// busy drive, and the host would be silent.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/result.hpp"
#include "fleet/protocol/owner.hpp"
#include "fleet/protocol/set_state.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::fleet {

// A host that does not answer for this long is no longer relied on.
inline constexpr std::chrono::milliseconds kSilent{2000};
// A worker that runs, but without a sign of life for this long, is stuck. One that has ended is noticed at
// once.
inline constexpr std::chrono::milliseconds kNoBeat{10'000};

struct BoardSize {
  std::uint64_t units = 0, pieces = 0, small_files = 0;
};

class Board {
 public:
  // In `folder` if there is no memory folder that belongs to this user alone, or if it has no space for it.
  static std::filesystem::path path_of(const std::filesystem::path& folder, const std::string& set);
  // Files that the worker stores in `folder`: the entries of its walk as a manifest, and their
  // WalkNotes.
  static std::filesystem::path entries_of(const std::filesystem::path& folder, const std::string& set);
  static std::filesystem::path notes_of(const std::filesystem::path& folder, const std::string& set);

  // For the worker. `data` is the folder that contains the copy while it is being written. Unavailable if
  // another worker has the board of this set.
  static Result<std::unique_ptr<Board>> create(const std::filesystem::path& folder, const std::string& set,
                                               const std::string& data, const BoardSize& size);
  // For the server. NotFound if there is no board.
  static Result<std::unique_ptr<Board>> open(const std::filesystem::path& folder, const std::string& set);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  const BoardSize& size() const { return size_; }
  std::string data() const;

  // For the worker.
  void beat();
  void set_reads(SetState::Reads reads);
  void set_unit(std::uint64_t unit, UnitState state);
  void set_digest(std::uint64_t piece, const staging::Digest& digest);  // before the piece's state
  void set_small_digest(std::uint64_t small_file, const staging::Digest& digest);
  void set_done();  // published: peers can still read the copy until the server has found it in the catalog
  std::vector<NodeId> members() const;  // hosts that asked recently, so they stage the set as well
  void remove();

  // For the server.
  bool is_alive() const;
  bool is_done() const;
  SetState::Reads reads() const;
  UnitState unit(std::uint64_t unit) const;
  staging::Digest digest(std::uint64_t piece) const;
  std::optional<staging::Digest> small_digest(std::uint64_t small_file) const;  // no value: not available
  void note_member(NodeId node);

 private:
  struct Header;
  Board(UniqueFd file, void* mapped, std::size_t bytes, const BoardSize& size, std::filesystem::path path)
      : file_(std::move(file)), mapped_(mapped), bytes_(bytes), size_(size), path_(std::move(path)) {}
  Header& header() const;
  std::atomic<std::uint8_t>& state(std::uint64_t unit) const;
  std::uint8_t* digest_at(std::uint64_t index) const;

  UniqueFd file_;
  void* mapped_;
  std::size_t bytes_;
  BoardSize size_;
  std::filesystem::path path_, entries_, notes_;
};

}  // namespace spark::fleet
