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

FolderReading::FolderReading(AdoptedFolder wanted, const staging::Entries& entries,
                             std::filesystem::path notes)
    : folder(std::move(wanted)),
      state(state_of(entries)),
      bytes(bytes_of(entries)),
      notes_(std::move(notes)) {}

Result<staging::Manifest> FolderReading::read() const {
  auto now = look_at(folder, stop);
  if (!now) return now.take_error();
  if (state_of(now->walked.walked.entries) != state)
    return fail(Errc::Unavailable, now->tree.shown("") + " has changed since it was looked at");
  return hash_folder(folder, std::move(*now), notes_, stop);
}

void FolderReading::run() {
  manifest = no_throw([this] { return read(); });
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
