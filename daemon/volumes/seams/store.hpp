// The seam to a volume's persistent data, in the state folder.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "daemon/volumes/seams/intent.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

// The required file system of a volume: set in the config, or pinned at its first mount.
struct FilesystemIdentity {
  std::string type, uuid;    // empty means not known yet
  Bytes bytes = 0;           // of the file system; 0 means unknown
  std::string namespace_id;  // its UUID, NGUID or EUI-64; empty if the target reports none
  std::uint64_t stamp = 0;   // of the superblock that was mounted; 0 means unknown
  // For an exclusive volume: it is read-only until a person wants it writable again.
  bool is_published = false;

  bool operator==(const FilesystemIdentity&) const = default;
};

// The rest may be written later.
inline bool is_same_filesystem(const FilesystemIdentity& one, const FilesystemIdentity& other) {
  return one.type == other.type && one.uuid == other.uuid && one.is_published == other.is_published;
}

// Records that a volume can do without: see history.hpp, Rivals::remember(), Fence::note_held(),
// Publication::record_wish(), Fence::expect_late_writes(), Health::has_new_uuid(). Held and Renamed end with
// a restart of the host, as mounts do.
enum class Record { History, Addresses, Held, ToWrite, LateWrites, Renamed };

// Saves are durable when they return; reading saved values never blocks.
class VolumeStore {
 public:
  virtual ~VolumeStore() = default;

  // From then on only this file system is mounted as the volume. An empty one ends the record, and needs no
  // room.
  virtual asio::awaitable<Result<>> pin(FilesystemIdentity identity) = 0;
  // Without a UUID if none was ever pinned; an error if that can't be read or understood.
  virtual Result<FilesystemIdentity> pinned_identity() = 0;
  // Sets the value that saved_intent() returns after a restart.
  virtual asio::awaitable<Result<>> save_intent(Intent intent) = 0;
  // Up if none was ever saved; an error if the saved intent can't be read or understood.
  virtual Result<Intent> saved_intent() = 0;
  // Sets the value that saved() returns after a restart; empty if none was ever saved. An empty one needs no
  // room.
  virtual asio::awaitable<Result<>> save(Record kind, json::object record) = 0;
  virtual json::object saved(Record kind) = 0;
};

}  // namespace spark::volumes
