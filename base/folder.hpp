// The entries of a folder as a range. The loop ends early when the folder can't be read further.
#pragma once

#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace spark {

// Iterator: std::filesystem's, of a folder or of all below it.
template <class Iterator>
class FolderRange {
 public:
  explicit FolderRange(const std::filesystem::path& folder) : error_(own_), first_(folder, own_) {}
  // `error`: the caller's; the loop ends as soon as it is set.
  FolderRange(const std::filesystem::path& folder, std::error_code& error)
      : error_(error), first_(folder, error) {}
  FolderRange(const FolderRange&) = delete;
  FolderRange& operator=(const FolderRange&) = delete;

  class Position {
   public:
    Position(Iterator at, std::error_code& error) : at_(std::move(at)), error_(error) {}
    const std::filesystem::directory_entry& operator*() const { return *at_; }
    void operator++() { at_.increment(error_); }
    bool operator==(std::default_sentinel_t /*end*/) const { return error_ || at_ == Iterator(); }

   private:
    Iterator at_;
    std::error_code& error_;
  };
  Position begin() const { return {first_, error_}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::error_code own_;
  std::error_code& error_;
  Iterator first_;
};

using FolderEntries = FolderRange<std::filesystem::directory_iterator>;
using TreeEntries = FolderRange<std::filesystem::recursive_directory_iterator>;

// In the order of the file system; those before an error, which only the caller's `error` tells.
inline std::vector<std::string> names_in_folder(const std::filesystem::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (const auto& entry : FolderEntries(folder, error)) names.push_back(entry.path().filename().native());
  return names;
}
inline std::vector<std::string> names_in_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  return names_in_folder(folder, ignored);
}

}  // namespace spark
