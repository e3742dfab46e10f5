// The persistent data of a volume, in files of the state folder that workers write.
#pragma once

#include "base/file.hpp"
#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/seams/store.hpp"

namespace spark::volumes {

class FileStore final : public VolumeStore {
 public:
  FileStore(Asker& asker, const std::string& volume, const std::filesystem::path& folder);

  asio::awaitable<Result<>> pin(FilesystemIdentity identity) override;
  // None if a person has removed the file, as the hint of a refused volume says.
  Result<FilesystemIdentity> pinned_identity() override;
  asio::awaitable<Result<>> save_intent(Intent intent) override;
  Result<Intent> saved_intent() override;
  asio::awaitable<Result<>> save(Record kind, json::object record) override;
  json::object saved(Record kind) override;

  // A worker that mounts also pins, in one step.
  const std::filesystem::path& pin_file() const { return pin_file_; }
  static json::object content_of(const FilesystemIdentity& identity);
  void note_pinned(FilesystemIdentity identity) { pinned_ = std::move(identity); }

 private:
  asio::awaitable<Result<>> write(std::filesystem::path file, json::object content);
  asio::awaitable<Result<>> remove(std::filesystem::path file);
  std::filesystem::path file_of(Record kind) const;
  bool is_leaving() const;

  Asker& asker_;
  std::string base_;  // of the files' names
  std::filesystem::path pin_file_, intent_file_, leaving_file_;
  Result<FilesystemIdentity> pinned_;
};

}  // namespace spark::volumes
