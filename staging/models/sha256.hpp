// SHA-256 and git's SHA-1, for digests that others published. The only user of libcrypto.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/units.hpp"

struct evp_md_ctx_st;
struct evp_md_st;

namespace spark::staging {

class ContentHash {
 public:
  void add(std::span<const std::byte> bytes);
  std::string hex();  // of all bytes added; nothing can be added afterwards

 protected:
  explicit ContentHash(const evp_md_st* kind);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

class Sha256 : public ContentHash {
 public:
  Sha256();
};

// The id that git gives to a file of this size: the SHA-1 of "blob SIZE", a zero byte, and the content.
class GitSha1 : public ContentHash {
 public:
  explicit GitSha1(Bytes size);
};

std::string git_sha1_of(std::string_view content);

}  // namespace spark::staging
