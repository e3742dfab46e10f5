#include "staging/models/sha256.hpp"

#include <openssl/evp.h>

#include <array>
#include <new>
#include <span>

#include "base/text.hpp"

namespace spark::staging {

void ContentHash::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

// These calls fail only if memory is short.
ContentHash::ContentHash(const evp_md_st* kind) : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_.get(), kind, nullptr) != 1) throw std::bad_alloc();
}

void ContentHash::add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

std::string ContentHash::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned bytes = 0;
  if (EVP_DigestFinal_ex(context_.get(), digest.data(), &bytes) != 1) throw std::bad_alloc();
  return hex_of(std::as_bytes(std::span(digest).first(bytes)));
}

Sha256::Sha256() : ContentHash(EVP_sha256()) {}

GitSha1::GitSha1(Bytes size) : ContentHash(EVP_sha1()) {
  const std::string head = "blob " + std::to_string(size) + '\0';
  add(std::as_bytes(std::span(head)));
}

std::string git_sha1_of(std::string_view content) {
  GitSha1 hash(content.size());
  hash.add(std::as_bytes(std::span(content)));
  return hash.hex();
}

}  // namespace spark::staging
