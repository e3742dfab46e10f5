// The bytes of a path, for objects that exist by the million: one pointer instead of std::string's 32 bytes.
#pragma once

#include <algorithm>
#include <compare>
#include <memory>
#include <string>
#include <string_view>

namespace spark::staging {

// Holds no NUL: a file system's paths have none. Converts to and from the usual string types.
class RawPath {
 public:
  RawPath() = default;
  RawPath(std::string_view bytes) : bytes_(bytes.empty() ? nullptr : new char[bytes.size() + 1]) {
    if (bytes_) *std::ranges::copy(bytes, bytes_.get()).out = '\0';
  }
  RawPath(const std::string& bytes) : RawPath(std::string_view(bytes)) {}
  RawPath(const char* bytes) : RawPath(std::string_view(bytes)) {}
  RawPath(const RawPath& other) : RawPath(other.view()) {}
  RawPath& operator=(const RawPath& other) { return *this = RawPath(other.view()); }
  RawPath(RawPath&&) = default;
  RawPath& operator=(RawPath&&) = default;
  ~RawPath() = default;

  bool empty() const { return !bytes_; }
  const char* c_str() const { return bytes_ ? bytes_.get() : ""; }
  std::string_view view() const { return c_str(); }
  operator std::string_view() const { return view(); }

  friend bool operator==(const RawPath& a, const RawPath& b) { return a.view() == b.view(); }
  friend auto operator<=>(const RawPath& a, const RawPath& b) { return a.view() <=> b.view(); }
  friend bool operator==(const RawPath& a, std::string_view b) { return a.view() == b; }
  friend auto operator<=>(const RawPath& a, std::string_view b) { return a.view() <=> b; }

 private:
  std::unique_ptr<char[]> bytes_;  // NUL-terminated; none if empty
};

// The last component of a path in a tree, and all before it with the slash: "a/b" is "a/" and "b".
inline std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}
inline std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.rfind('/') + 1);
}

}  // namespace spark::staging
