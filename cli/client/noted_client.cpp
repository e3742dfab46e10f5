#include "cli/client/noted_client.hpp"

#include "base/text.hpp"
#include "base/version.hpp"

namespace spark::cli {
namespace {

constexpr std::string_view kDaemon = "spark-staged/";
constexpr std::size_t kMostOfABody = 200;  // characters

class NotedClient final : public Client {
 public:
  NotedClient(std::unique_ptr<Client> client, ClientNotes notes, std::ostream& err, const Clock& clock)
      : client_(std::move(client)), notes_(notes), err_(err), clock_(clock) {}

  Result<Answer> send(const Request& request) override {
    const SteadyTime began = clock_.steady();
    return noted(request, client_->send(request), began);
  }

  Result<Answer> stream(const Request& request, const LineSink& sink, Duration silence) override {
    const SteadyTime began = clock_.steady();
    return noted(request, client_->stream(request, sink, silence), began);
  }

 private:
  Result<Answer> noted(const Request& request, Result<Answer> answer, SteadyTime began) {
    if (notes_.on_version && answer) compare_version(daemon_version(*answer));
    if (notes_.on_requests) tell(request, answer, began);
    return answer;
  }

  void compare_version(const std::string& version) {
    if (version.empty() || version == kVersion) return;
    notes_.on_version = false;
    err_ << "spark-stage: warning: this is version " << kVersion << ", and the running daemon is version "
         << printable(version)
         << " - restart it with `sudo systemctl restart spark-staged`, which disturbs no mount" << std::endl;
  }

  void tell(const Request& request, const Result<Answer>& answer, SteadyTime began) {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.steady() - began);
    err_ << request.method << " " << printable(request.target);
    if (!request.body.empty()) err_ << " " << shorten(printable(request.body), kMostOfABody);
    err_ << ": " << (answer ? std::to_string(answer->status) : answer.error().what) << ", " << took.count()
         << " ms" << std::endl;
  }

  std::unique_ptr<Client> client_;
  ClientNotes notes_;
  std::ostream& err_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<Client> make_noted(std::unique_ptr<Client> client, ClientNotes notes, std::ostream& err,
                                   const Clock& clock) {
  return std::make_unique<NotedClient>(std::move(client), notes, err, clock);
}

std::string daemon_version(const Answer& answer) {
  if (!answer.server.starts_with(kDaemon)) return {};
  return answer.server.substr(kDaemon.size());
}

}  // namespace spark::cli
