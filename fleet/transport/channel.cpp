#include "fleet/transport/channel.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/text.hpp"

namespace spark::fleet {
namespace {

constexpr std::size_t kWriteBuffer = 256 * 1024;  // bytes per send(); a TLS record has up to 16 KiB
// TLS_AES_128_GCM_SHA256, the only cipher that works with every external PSK of TLS 1.3.
constexpr unsigned char kCipher[] = {0x13, 0x01};

std::string bytes_of_key(const std::string& key) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < key.size(); i += 2)
    bytes += static_cast<char>(kHexDigits.find(key[i]) * 16 + kHexDigits.find(key[i + 1]));
  return bytes;
}

SSL_SESSION* session_with(SSL* ssl, const std::string& key) {
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kCipher);
  SSL_SESSION* session = SSL_SESSION_new();
  const std::string bytes = bytes_of_key(key);
  const bool made = session != nullptr && cipher != nullptr &&
                    SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(bytes.data()),
                                                bytes.size()) == 1 &&
                    SSL_SESSION_set_cipher(session, cipher) == 1 &&
                    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

Security& security_of(SSL* ssl) {
  return *static_cast<Security*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

int use_key(SSL* ssl, const EVP_MD* /*digest*/, const unsigned char** id, std::size_t* length,
            SSL_SESSION** session) {
  const Security& security = security_of(ssl);
  *session = session_with(ssl, security.key());
  *id = reinterpret_cast<const unsigned char*>(security.identity().data());
  *length = security.identity().size();
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* /*identity*/, std::size_t /*length*/, SSL_SESSION** session) {
  *session = session_with(ssl, security_of(ssl).key());
  return *session != nullptr ? 1 : 0;
}

SSL_CTX* context_for(const SSL_METHOD* method, Security* security) {
  SSL_CTX* context = SSL_CTX_new(method);
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX_set_app_data(context, security);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
#ifdef SSL_OP_ENABLE_KTLS
  SSL_CTX_set_options(context, SSL_OP_ENABLE_KTLS);  // no effect where library or kernel lacks it
#endif
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // One recv() for each record. A larger read buffer costs CPU: for each record OpenSSL 3.0 moves all that it
  // has read ahead to the front.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

}  // namespace

Result<std::shared_ptr<Security>> Security::make(const std::string& key, std::string identity) {
  if (identity.empty() || identity.size() > 255)
    return fail(Errc::Invalid, "the name of this host has to have 1 to 255 bytes");
  std::shared_ptr<Security> made(new Security(key, std::move(identity)));
  made->client_ = context_for(TLS_client_method(), made.get());
  SSL_CTX_set_psk_use_session_callback(made->client_, use_key);
  SSL_CTX_set_verify(made->client_, SSL_VERIFY_PEER, nullptr);  // no certificate is trusted, only the key
  made->server_ = context_for(TLS_server_method(), made.get());
  SSL_CTX_set_psk_find_session_callback(made->server_, find_key);
  return made;
}

Security::~Security() {
  SSL_CTX_free(client_);
  SSL_CTX_free(server_);
}

Channel::~Channel() {
  SSL_free(ssl_);
}

Result<> Channel::begin(ssl_ctx_st* context) {
  ssl_ = SSL_new(context);
  if (ssl_ == nullptr || SSL_set_fd(ssl_, socket_.get()) != 1) throw std::bad_alloc();
  const bool accepts = context == security_->server_;
  const auto hello = repeat([&] { return accepts ? SSL_accept(ssl_) : SSL_connect(ssl_); }, "greeting");
  // A server may ignore the key that the client offers.
  const bool has_key = hello && SSL_session_reused(ssl_) == 1;
  if (!has_key) {
    if (!hello && hello.error().kind != Errc::Unavailable) return hello.take_error();
    if (!hello && BIO_number_read(SSL_get_rbio(ssl_)) == 0)
      return fail(Errc::Refused, "the other host closed the connection before it said anything",
                  "see whether its fleet.peers have " + local_address_of(socket_.get()) +
                      ", the address of this host; its `spark-stage status` names the hosts that it refused");
    return fail(Errc::Denied, "the other host does not have this fleet's key, or does not speak TLS 1.3",
                "put the same fleet.key_file on every host");
  }
  if (BIO_get_ktls_send(SSL_get_wbio(ssl_)) != 0)
    return {};  // the kernel makes the records, of what it is sent
  // Buffers many records for one send() call.
  BIO* buffer = BIO_new(BIO_f_buffer());
  if (buffer == nullptr || BIO_set_write_buffer_size(buffer, kWriteBuffer) != 1) throw std::bad_alloc();
  BIO* plain = SSL_get_wbio(ssl_);
  BIO_up_ref(plain);
  SSL_set0_wbio(ssl_, BIO_push(buffer, plain));
  return {};
}

// Repeats the step whenever the socket is ready, until it is done.
template <class Step>
Result<int> Channel::repeat(const Step& step, const char* doing) {
  for (;;) {
    ERR_clear_error();
    const int done = step();
    if (done > 0) return done;
    const int why = SSL_get_error(ssl_, done);
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
      return fail(Errc::Unavailable, std::string(doing) + ": the connection to the other host was lost");
    if (auto is_ready = wait(why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, doing); !is_ready)
      return is_ready.take_error();
  }
}

Result<> Channel::wait(short events, const char* doing) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
  // Once the time is over, even if the socket is ready.
  const bool is_late = left.count() <= 0;
  const bool is_ready = !is_late && wait_for(socket_.get(), events, std::min(patience_, left), interrupt_);
  if (interrupt_ != nullptr && interrupt_->is_set())
    return fail(Errc::Cancelled, std::string(doing) + ": it is no longer needed");
  if (is_late) return fail(Errc::TimedOut, std::string(doing) + ": the other host is too slow");
  if (!is_ready) return fail(Errc::TimedOut, std::string(doing) + ": the other host is silent");
  return {};
}

Result<std::size_t> Channel::read_some(std::span<char> into) {
  const auto read =
      repeat([&] { return SSL_read(ssl_, into.data(), static_cast<int>(into.size())); }, "reading");
  if (!read) return read.take_error();
  return static_cast<std::size_t>(*read);
}

Result<> Channel::read_all(std::span<char> into) {
  while (!into.empty()) {
    const auto read = read_some(into);
    if (!read) return read.take_error();
    if (*read == 0) return fail(Errc::Unavailable, "reading: the other host closed the connection");
    into = into.subspan(*read);
  }
  return {};
}

Result<> Channel::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const int most = static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20));
    const auto wrote = repeat([&] { return SSL_write(ssl_, bytes.data(), most); }, "sending");
    if (!wrote) return wrote.take_error();
    bytes.remove_prefix(static_cast<std::size_t>(*wrote));
  }
  return {};
}

Result<> Channel::flush() {
  for (;;) {
    BIO* out = SSL_get_wbio(ssl_);
    if (BIO_flush(out) > 0) return {};
    if (!BIO_should_retry(out))
      return fail(Errc::Unavailable, "sending: the connection to the other host was lost");
    if (auto is_ready = wait(POLLOUT, "sending"); !is_ready) return is_ready;
  }
}

Result<std::unique_ptr<Channel>> Channel::accept(std::shared_ptr<Security> security, UniqueFd socket,
                                                 std::chrono::milliseconds patience) {
  ssl_ctx_st* context = security->server_;
  std::unique_ptr<Channel> channel(new Channel(std::move(security), std::move(socket), patience));
  channel->until_ = std::chrono::steady_clock::now() + patience;
  if (auto begun = channel->begin(context); !begun) return begun.take_error();
  channel->until_ = SteadyTime::max();
  return channel;
}

Result<std::unique_ptr<Channel>> Channel::connect(std::shared_ptr<Security> security, const Endpoint& to,
                                                  std::chrono::milliseconds patience,
                                                  const Interrupt* interrupt) {
  auto socket = connect_to(to, patience, interrupt);
  if (!socket) return socket.take_error();
  ssl_ctx_st* context = security->client_;
  std::unique_ptr<Channel> channel(new Channel(std::move(security), std::move(*socket), patience));
  channel->set_limits(patience, std::chrono::steady_clock::now() + 2 * patience, interrupt);
  if (auto begun = channel->begin(context); !begun) return begun.take_error();
  channel->set_limits(patience, SteadyTime::max());
  return channel;
}

}  // namespace spark::fleet
