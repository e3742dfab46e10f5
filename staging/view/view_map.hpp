// The units of a copy in progress that may be read, in a file of shared memory: the staging worker sets
// them, the process of the live view reads them and asks for others. Either process may be killed at any
// moment: all fields are written and read by single atomic operations.
//
// A unit is Here only after its bytes were hashed and their write has returned. Before bytes of the copy may
// change again, the worker withdraws their units and begins the next epoch. So a reader takes the epoch,
// sees that the unit is Here, reads, and has right bytes if the epoch is still the same.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/manifest/units.hpp"

namespace spark::staging {

enum class UnitState : std::uint8_t {
  Missing,
  Here,
  Failed  // of a file that is no longer as it was walked: a reader must not get a mix of two states
};

inline constexpr char kHasChanged[] = "the source has changed since the view began";

// The files of one view.
struct ViewPlace {
  std::filesystem::path folder;  // of all views of a cache, on a drive
  std::string name;              // KEY.NUMBER: of the dataset, which may have several views, and of the view
  // Of the maps, in memory: on a drive, a write to a mapped file waits while the file system commits. Empty
  // means that they are in the folder.
  std::filesystem::path memory{};
  const std::filesystem::path& maps() const { return memory.empty() ? folder : memory; }
  std::filesystem::path map() const { return maps() / (name + ".view"); }
  std::filesystem::path entries() const { return folder / (name + ".entries"); }  // as a manifest
  std::filesystem::path note() const { return folder / (name + ".at"); }  // for whoever takes the view over
};

// The map is in /run, where only root makes names: no other user can make two processes of root's use
// different maps. Where that is no memory, or not for root alone, the map is on the drive.
ViewPlace view_place(const SystemRoot& root, const std::filesystem::path& state_dir, std::string name);
std::string view_name(const std::string& dataset, std::uint64_t number);

class ViewMap {
 public:
  // For the worker. A view that has a map already keeps it, with all units withdrawn: readers wait for the
  // next attempt. Mismatch: it is of another set, and fails, or has failed, or is of a published copy.
  // `data`: the folder with the copy.
  static Result<std::unique_ptr<ViewMap>> make(const ViewPlace& place, const Digest& set, std::uint64_t units,
                                               const std::string& data);
  // NotFound if there is none.
  static Result<std::unique_ptr<ViewMap>> open(const ViewPlace& place);
  // All files of the view, if there are any.
  static void remove(const ViewPlace& place);
  ~ViewMap();
  ViewMap(const ViewMap&) = delete;
  ViewMap& operator=(const ViewMap&) = delete;

  const Digest& set() const { return header().set; }
  std::uint64_t units() const { return units_; }

  // For the worker.
  // What has failed stays so, also once the copy is published: it has the file's next state.
  void set_here(const UnitRange& units);
  void withdraw(const UnitRange& units, UnitState to = UnitState::Missing);
  void set_published(const std::string& path);
  // A missing unit that a reader waits for, of a small file (is_small) or of another.
  std::optional<std::uint64_t> take_wanted(bool is_small);

  // Before the partial copy of the dataset is changed: of all its views. Nothing more arrives in those other
  // than `own`, which has a viewer again.
  static void withdraw_all(const SystemRoot& root, const std::filesystem::path& state_dir,
                           const std::string& dataset, std::uint64_t own);

  // For the caller that decides that nothing more arrives: missing units fail, for good. Not once it is
  // published.
  void set_failed(const std::string& reason);

  // For the view.
  std::uint64_t epoch() const { return header().epoch; }
  UnitState unit(std::uint64_t unit) const { return state(unit); }
  bool has_failed() const { return header().phase == Phase::Failed; }
  // Why it has failed; empty if it has not.
  std::string reason() const { return has_failed() ? header().reason.data() : ""; }
  bool is_published() const { return header().phase == Phase::Published; }
  // The folder with the copy: the published one, once it is.
  std::string data() const { return is_published() ? header().published.data() : header().data.data(); }
  void want(std::uint64_t unit, bool is_small);
  // How programs have a file open, by its first unit: while it is open, the kernel wants the same answer for
  // each open, also from the next process.
  struct Opens {
    std::atomic<std::uint32_t> count;
    std::atomic<std::uint32_t> backing;  // the kernel's number for the copy's file; 0: the view is read
  };
  Opens& opens(std::uint64_t first_unit) const {
    return reinterpret_cast<Opens*>(static_cast<char*>(mapped_) + sizeof(Header))[first_unit];
  }
  // Counts changes of the map, and calls of wake(). wait() returns after the next one, or the time.
  std::uint32_t changes() const { return header().changes; }
  void wait(std::uint32_t changes, std::chrono::milliseconds most) const;
  void wake();

 private:
  enum class Phase : std::uint8_t { Copying, Published, Failed };
  static constexpr std::size_t kWanted = 1024;  // remembered; a reader asks again for a unit that fell out
  // One process at a time writes each, and it is read once a flag says so.
  using Text = std::array<char, 4096>;
  // Written and read by the same program. After an upgrade a map may be an older program's.
  struct Header {
    static std::uint64_t right_magic() {
      static_assert(sizeof(Header) < 1U << 16U && sizeof(Header) % alignof(Opens) == 0);
      return 0x77656976'6b010000U + sizeof(Header);  // in the lowest 16 bits
    }
    static std::size_t bytes_with(std::uint64_t units) {
      return sizeof(Header) + units * (sizeof(Opens) + sizeof(std::atomic<UnitState>));
    }
    std::uint64_t magic, units;
    Digest set;
    std::atomic<std::uint64_t> epoch;
    std::atomic<std::uint32_t> changes;  // a futex
    std::atomic<std::uint32_t> waiters;  // may stay too high if one was killed
    std::atomic<Phase> phase;
    struct Wanted {
      std::atomic<std::uint64_t> asked, taken;                // counts
      std::array<std::atomic<std::uint64_t>, kWanted> units;  // + 1; 0: none
    };
    std::array<Wanted, 2> wanted;  // of large and of small files
    Text data, published, reason;
  };
  ViewMap(UniqueFd file, void* mapped, std::size_t bytes, std::uint64_t units)
      : file_(std::move(file)), mapped_(mapped), bytes_(bytes), units_(units) {}
  Header& header() const { return *static_cast<Header*>(mapped_); }
  std::atomic<UnitState>& state(std::uint64_t unit) const {
    static_assert(sizeof(std::atomic<UnitState>) == 1 && std::atomic<UnitState>::is_always_lock_free);
    return reinterpret_cast<std::atomic<UnitState>*>(&opens(units_))[unit];
  }

  UniqueFd file_;
  void* mapped_;
  std::size_t bytes_;
  std::uint64_t units_;
};

}  // namespace spark::staging
