// A socket that answers each connection with the next of a list of texts, and records the requests.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "slurm/settings.h"
}

namespace spark {

inline Daemon daemon_at(const char* socket) {
  Daemon daemon{};
  std::strcpy(daemon.socket, socket);
  std::strcpy(daemon.node, "n1");
  return daemon;
}

inline std::string answer(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

inline std::string chunk(const std::string& text) {
  char size[16];
  std::snprintf(size, sizeof size, "%zx", text.size());
  return std::string(size) + "\r\n" + text + "\r\n";
}

// The events of a job, one per chunk; a truncated stream has no last chunk.
inline std::string events(const std::vector<std::string>& lines, bool cut_off = false) {
  std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& line : lines) text += chunk(line + "\n");
  return cut_off ? text : text + "0\r\n\r\n";
}

class FakeDaemon {
 public:
  explicit FakeDaemon(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener_, 8);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeDaemon() {
    join();
    std::filesystem::remove_all(folder_);
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  const char* path() const { return path_.c_str(); }

  // Call after the last answer; each text begins with the request line.
  std::vector<std::string> requests() {
    join();
    return requests_;
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  void serve() {
    for (const std::string& text : answers_) {
      const int peer = ::accept(listener_, nullptr, nullptr);
      std::string request(65536, '\0');
      std::size_t length = 0;
      do {
        const auto got = ::recv(peer, request.data() + length, request.size() - length, 0);
        if (got <= 0) break;
        length += static_cast<std::size_t>(got);
      } while (!is_whole(request.substr(0, length)));
      requests_.push_back(request.substr(0, length));
      // One byte at a time: an answer may arrive in pieces of any size.
      for (const char c : text) {
        if (::send(peer, &c, 1, MSG_NOSIGNAL) != 1) break;
      }
      ::close(peer);
    }
    ::close(listener_);
    std::filesystem::remove(path_);
  }

  static bool is_whole(const std::string& request) {
    const auto header = request.find("\r\n\r\n");
    const auto length = request.find("Content-Length: ");
    return header != std::string::npos &&
           request.size() >= header + 4 + std::stoul(request.substr(length + 16));
  }

  static std::string make_folder() {
    char name[] = "/tmp/spark-slurm-XXXXXX";
    return ::mkdtemp(name);
  }

  std::vector<std::string> answers_, requests_;
  std::string folder_ = make_folder();
  std::string path_ = folder_ + "/api.sock";
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace spark
