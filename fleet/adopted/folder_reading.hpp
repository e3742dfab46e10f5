// The reading of an adopted folder's files, in a thread of its own: it takes hours for a large model, and the
// folder, and all others, are looked at meanwhile.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "fleet/adopted/folder.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// Shared by the thread that reads and the Adoption that waits for it.
struct FolderReading {
  // The entries are only described: a list of a million would wait in memory for its turn.
  FolderReading(AdoptedFolder wanted, const staging::Entries& entries, std::filesystem::path notes);

  const AdoptedFolder folder;
  const staging::Digest state;  // of the folder when it was walked; see state_of
  const Bytes bytes;            // of its files
  std::atomic<bool> has_begun{false}, has_ended{false};
  StopFlag stop{false};                  // set when the folder has changed: the result is of no use
  Result<staging::Manifest> manifest{};  // once it has ended; see hash_folder

  void run();  // once

 private:
  std::filesystem::path notes_;  // see ReadingNotes
  Result<staging::Manifest> read() const;
};

// Reads one folder at a time.
class FolderReader {
 public:
  FolderReader() = default;
  ~FolderReader();
  FolderReader(const FolderReader&) = delete;
  FolderReader& operator=(const FolderReader&) = delete;

  bool is_free();
  // Requires is_free(). Where the system allows no thread the reading has not begun.
  void begin(std::shared_ptr<FolderReading> reading);

 private:
  std::shared_ptr<FolderReading> reading_;
  std::thread thread_;
};

}  // namespace spark::fleet
