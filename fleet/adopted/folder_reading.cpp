#include "fleet/adopted/folder_reading.hpp"

#include <utility>

#include "fleet/adopted/folder_hash.hpp"

namespace spark::fleet {
namespace {

Bytes bytes_of(const staging::Entries& entries) {
  Bytes all = 0;
  for (const staging::Entry& entry : entries) all += staging::is_content(entry) ? entry.size : 0;
  return all;
}

}  // namespace

FolderReading::FolderReading(AdoptedFolder wanted, FolderNow as_it_is, std::filesystem::path notes)
    : folder(std::move(wanted)),
      state(state_of(as_it_is.walked.walked.entries)),
      bytes(bytes_of(as_it_is.walked.walked.entries)),
      now_(std::move(as_it_is)),
      notes_(std::move(notes)) {}

void FolderReading::run() {
  manifest = no_throw([this] { return hash_folder(folder, std::move(now_), notes_, stop); });
  has_ended = true;
}

FolderReader::~FolderReader() {
  if (reading_) reading_->stop = true;
  if (thread_.joinable()) thread_.join();
}

bool FolderReader::is_free() {
  if (reading_ && !reading_->has_ended) return false;
  if (thread_.joinable()) thread_.join();
  reading_.reset();
  return true;
}

void FolderReader::begin(std::shared_ptr<FolderReading> reading) {
  reading->has_begun = true;
  thread_ = start_thread([reading] { reading->run(); });
  reading->has_begun = thread_.joinable();
  if (thread_.joinable()) reading_ = std::move(reading);
}

}  // namespace spark::fleet
