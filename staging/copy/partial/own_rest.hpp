// A hidden folder that this program has made, or that a killed worker has left. Its name proves nothing: who
// may write to the folder around it gives that name to any folder of this user. Only a value of this type may
// be emptied, deleted or used.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/result.hpp"

namespace spark::staging {

class OwnRest {
 public:
  // What proves it: it belongs to this user, it is closed to all others, and in it is an empty file of this
  // user, its mark, which is closed to others too and has no other name. Others can neither give a folder
  // such a mode nor then put anything into it. An empty folder needs no mark.
  // InOwnFolder: none is needed where only this user and root may rename. Earlier versions made none.
  enum class Unmarked { Refused, InOwnFolder };

  // NotFound, or Refused without the proof (stays_unproven).
  static Result<OwnRest> open(const std::filesystem::path& path, const std::string& mark,
                              Unmarked unmarked = Unmarked::Refused);
  // Creates and marks it if it is not there. Unavailable if another process deletes it. On a file system that
  // keeps no modes it is Refused where a mark is needed, and nothing is left there.
  static Result<OwnRest> make(const std::filesystem::path& path, const std::string& mark,
                              Unmarked unmarked = Unmarked::Refused);
  // Of the folder that is `opened` and that the caller has checked: closes it to others and marks it. Without
  // room for a mark it stays unmarked.
  static OwnRest claim(const std::filesystem::path& path, const std::string& mark, UniqueFd opened);

  const UniqueFd& opened() const { return opened_; }
  std::filesystem::path folder() const { return held_path(opened_); }
  const std::filesystem::path& path() const { return path_; }  // others may give it to another folder

  // Without the mark.
  Result<std::vector<std::string>> names() const;
  // Goes on after a failure, and returns the first.
  Result<> remove();
  Result<> remove_if_empty();

 private:
  OwnRest(std::filesystem::path path, std::string mark, UniqueFd opened)
      : path_(std::move(path)), mark_(std::move(mark)), opened_(std::move(opened)) {}
  bool is_marked() const;
  bool make_mark() const;
  Result<> prove(bool is_mark_needed) const;
  Result<> close_new(bool is_mark_needed) const;
  Result<> close_and_mark(bool is_mark_needed) const;

  std::filesystem::path path_;
  std::string mark_;
  UniqueFd opened_;
};

// This user owns what is there, and it was Refused since it has no proof: the user has to look at it.
bool stays_unproven(const std::filesystem::path& path, const Error& error);

}  // namespace spark::staging
