// A connection between two hosts of a fleet: TCP with TLS 1.3 and a key that all of them share. The only code
// that sees OpenSSL's TLS.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "base/result.hpp"
#include "fleet/transport/sockets.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace spark::fleet {

class Channel;

// What all connections of a process have in common. Used by any thread.
class Security {
 public:
  // `identity`: what this host calls itself to the other side, its NQN; at most 255 bytes.
  static Result<std::shared_ptr<Security>> make(const std::string& key, std::string identity);
  ~Security();
  Security(const Security&) = delete;
  Security& operator=(const Security&) = delete;

  const std::string& key() const { return key_; }
  const std::string& identity() const { return identity_; }

 private:
  friend class Channel;
  Security(std::string key, std::string identity) : key_(std::move(key)), identity_(std::move(identity)) {}
  std::string key_, identity_;
  ssl_ctx_st* client_ = nullptr;
  ssl_ctx_st* server_ = nullptr;
};

class Channel {
 public:
  // Every call waits `patience` at most without a byte moving: TimedOut then. Unavailable: no connection.
  // Denied: the other side has another key, or does not speak TLS.
  static Result<std::unique_ptr<Channel>> connect(std::shared_ptr<Security> security, const Endpoint& to,
                                                  std::chrono::milliseconds patience);
  static Result<std::unique_ptr<Channel>> accept(std::shared_ptr<Security> security, UniqueFd socket,
                                                 std::chrono::milliseconds patience);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // At least one byte, at most all of `into`; 0: the other side has closed the connection in order.
  Result<std::size_t> read_some(std::span<char> into);
  Result<> read_all(std::span<char> into);
  Result<> write_all(std::string_view bytes);
  Result<> flush();  // what was written and waits to be sent

  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }
  const std::string& peer() const { return peer_; }  // accepted: what the other side calls itself
  void set_peer(std::string identity) { peer_ = std::move(identity); }

 private:
  Channel(std::shared_ptr<Security> security, UniqueFd socket, std::chrono::milliseconds patience)
      : security_(std::move(security)), socket_(std::move(socket)), patience_(patience) {}
  Result<> begin(ssl_ctx_st* context);
  template <class Step>
  Result<int> repeat(const Step& step, const char* doing);

  std::shared_ptr<Security> security_;
  UniqueFd socket_;
  std::chrono::milliseconds patience_;
  ssl_st* ssl_ = nullptr;
  std::string peer_;
};

}  // namespace spark::fleet
