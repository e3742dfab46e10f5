// A shared secret in a file that only its owner can read. NVMe has one text for all of them,
// "PREFIX:HH:BASE64:": HH names a hash, and the last four bytes are the CRC-32 of the others (NVMe/TCP
// transport 1.0c, 3.6.1.5; base specification 2.0, 8.13.5.8). No error quotes a secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spark::nvmetcp {

struct SecretKind {
  const char* prefix;   // "DHHC-1"
  const char* name;     // "DH-HMAC-CHAP key"
  const char* make;     // the way out: how one is made
  const char* section;  // of the config, which names the file
  bool (*is_length_for)(std::string_view hash, std::size_t bytes);
};

struct Secret {
  std::string hash;  // "01"
  std::vector<std::uint8_t> bytes;
};

// Invalid: it is none of this kind, it is cut short, or its checksum is wrong.
Result<Secret> parse_secret(std::string_view text, const SecretKind& kind);

// The text in the file. Refused, with the file's name: it is not there, others than its owner can read it, it
// is not root's (or this process's user's), or its content is no secret of this kind.
Result<std::string> read_secret(const std::string& file, const SecretKind& kind);

}  // namespace spark::nvmetcp
