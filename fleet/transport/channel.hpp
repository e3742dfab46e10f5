// A connection between two hosts of a fleet: TCP with TLS 1.3 and a key shared by all hosts. The only code
// that uses OpenSSL's TLS.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/network/addresses.hpp"
#include "base/result.hpp"
#include "fleet/transport/interrupt.hpp"
#include "fleet/transport/sockets.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace spark::fleet {

class Channel;

// Limits of a request or of an answer. The second one holds also if the other side sends a byte now and then.
struct TimeLimits {
  std::chrono::milliseconds silence;  // without a byte
  std::chrono::milliseconds whole;    // in all
};

// State shared by all connections of a process. Thread-safe.
class Security {
 public:
  // `identity` is this host's name for the other side, its NQN; at most 255 bytes.
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
  // TimedOut if it takes longer than `patience` to connect, or then twice as long for the whole greeting: the
  // other side may have no key. Unavailable: no connection. Denied: the other side has another key, or does
  // not speak TLS. Refused: it closed the connection at once. Cancelled: `interrupt` is set (null: never).
  static Result<std::unique_ptr<Channel>> connect(std::shared_ptr<Security> security, const Endpoint& to,
                                                  std::chrono::milliseconds patience,
                                                  const Interrupt* interrupt = nullptr);
  // The same, but the whole greeting has `patience`.
  static Result<std::unique_ptr<Channel>> accept(std::shared_ptr<Security> security, UniqueFd socket,
                                                 std::chrono::milliseconds patience);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Reads at least one byte and at most all of `into`; 0: the other side closed the connection in order.
  Result<std::size_t> read_some(std::span<char> into);
  Result<> read_all(std::span<char> into);
  Result<> write_all(std::string_view bytes);
  Result<> flush();  // sends buffered writes
  std::string local_address() const { return local_address_of(socket_.get()); }
  // Any thread may ask while another one uses the channel.
  TcpBytes tcp_bytes() const { return tcp_bytes_of(socket_.get()); }

  // For the calls from now on: TimedOut if no byte moves for `silence` (`patience` without a call of this),
  // and from `until` on; Cancelled once `interrupt` is set, which outlives those calls.
  void set_limits(std::chrono::milliseconds silence, SteadyTime until, const Interrupt* interrupt = nullptr) {
    patience_ = silence;
    until_ = until;
    interrupt_ = interrupt;
  }

 private:
  Channel(std::shared_ptr<Security> security, UniqueFd socket, std::chrono::milliseconds patience)
      : security_(std::move(security)), socket_(std::move(socket)), patience_(patience) {}
  Result<> begin(ssl_ctx_st* context);
  template <class Step>
  Result<int> repeat(const Step& step, const char* doing);
  Result<> wait(short events, const char* doing) const;

  std::shared_ptr<Security> security_;
  UniqueFd socket_;
  std::chrono::milliseconds patience_;
  SteadyTime until_ = SteadyTime::max();
  const Interrupt* interrupt_ = nullptr;
  ssl_st* ssl_ = nullptr;
};

}  // namespace spark::fleet
