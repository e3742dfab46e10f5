// Readers of a copy while it is made. The caller implements it; a run without one tells no one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/units.hpp"

namespace spark::staging {

// A unit of a file that a reader waits for.
struct WantedOfFile {
  const Entry* entry = nullptr;
  std::uint64_t unit = 0;
};

// Functions but begin() and published() are called from any thread.
class Viewer {
 public:
  virtual ~Viewer() = default;

  // The entries as they were walked; the copy has their folders, and nothing is readable yet. The entries
  // must stay. `why_not`: why there can be no view; else empty. False: there is none, and at most published()
  // is called. Without a source a view goes on and none is begun, since a set's ACLs can't be read.
  virtual bool begin(const Entries& entries, bool has_source, const std::string& why_not) = 0;
  // An earlier attempt has left them.
  virtual void kept(const Entry& entry, const UnitRange& units) { arrived(entry, units); }
  // They were hashed, their write has returned, and the source was as walked when all of them had been read.
  virtual void arrived(const Entry& entry, const UnitRange& units) = 0;
  // The same for all units of the file.
  void arrived_whole(const Entry& entry) { arrived(entry, {0, unit_count(entry.size)}); }
  // Before the copy of the file is emptied. `has_changed`: the source is no longer as walked.
  virtual void withdraw(const Entry& entry, bool has_changed) = 0;
  // An error ends the run: the source is of another state than what was read before.
  virtual Result<> check() const { return {}; }
  // The next unit that a reader waits for, of small files (see is_small) or of the others.
  virtual std::optional<WantedOfFile> take_wanted(bool is_small) = 0;
  // All of it is in this folder now, under its own name; called whether the copy was made by this run or was
  // there already.
  virtual void published(const std::filesystem::path& copy, const std::filesystem::path& manifest) = 0;
};

}  // namespace spark::staging
