#include "cli/client/version_check.hpp"

#include "base/text.hpp"
#include "base/version.hpp"

namespace spark::cli {
namespace {

constexpr std::string_view kDaemon = "spark-staged/";

class VersionCheck final : public Client {
 public:
  VersionCheck(std::unique_ptr<Client> client, std::ostream& err) : client_(std::move(client)), err_(err) {}

  Result<Answer> send(const Request& request) override { return checked(client_->send(request)); }

  Result<Answer> stream(const Request& request, const LineSink& sink, Duration silence) override {
    return checked(client_->stream(request, sink, silence));
  }

 private:
  Result<Answer> checked(Result<Answer> answer) {
    if (!answer || is_told_) return answer;
    const std::string version = daemon_version(*answer);
    if (version.empty() || version == kVersion) return answer;
    is_told_ = true;
    err_ << "spark-stage: warning: this is version " << kVersion << ", and the running daemon is version "
         << printable(version)
         << " - restart it with `sudo systemctl restart spark-staged`, which disturbs no mount" << std::endl;
    return answer;
  }

  std::unique_ptr<Client> client_;
  std::ostream& err_;
  bool is_told_ = false;
};

}  // namespace

std::unique_ptr<Client> make_version_check(std::unique_ptr<Client> client, std::ostream& err) {
  return std::make_unique<VersionCheck>(std::move(client), err);
}

std::string daemon_version(const Answer& answer) {
  if (!answer.server.starts_with(kDaemon)) return {};
  return answer.server.substr(kDaemon.size());
}

}  // namespace spark::cli
