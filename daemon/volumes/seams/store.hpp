// The seam to what is kept of a volume through restarts, in the state folder.
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

// The file system that a volume has to be: given in the config, or pinned at its first mount.
struct FilesystemIdentity {
  std::string type, uuid;     // empty: not known yet
  Bytes bytes = 0;            // of the file system; 0: not known
  std::string namespace_id;   // its UUID, NGUID or EUI-64; empty: the target gives none
  std::uint64_t stamp = 0;    // of the superblock that was mounted; 0: not known
  bool is_published = false;  // an exclusive volume's: it is read-only until a person wants it writable again
};

// What is saved is durable when the call returns; what was saved never blocks.
class VolumeStore {
 public:
  virtual ~VolumeStore() = default;

  // Durable when it returns: from then on only this file system is mounted as the volume.
  virtual asio::awaitable<Result<>> pin(FilesystemIdentity identity) = 0;
  virtual std::optional<FilesystemIdentity> pinned_identity() = 0;
  // Durable when it returns: what saved_intent() gives after a restart.
  virtual asio::awaitable<Result<>> save_intent(Intent intent) = 0;
  // Up if none was ever saved; an error if what was saved can't be read or understood.
  virtual Result<Intent> saved_intent() = 0;
  // What saved_history() gives after a restart.
  virtual asio::awaitable<void> save_history(json::object history) = 0;
  virtual json::object saved_history() = 0;
};

}  // namespace spark::volumes
