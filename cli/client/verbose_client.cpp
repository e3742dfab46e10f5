#include "cli/client/verbose_client.hpp"

#include "base/text.hpp"

namespace spark::cli {
namespace {

constexpr std::size_t kMostOfABody = 200;  // characters

class VerboseClient final : public Client {
 public:
  VerboseClient(std::unique_ptr<Client> client, std::ostream& err, const Clock& clock)
      : client_(std::move(client)), err_(err), clock_(clock) {}

  Result<Answer> send(const Request& request) override {
    const SteadyTime began = clock_.steady();
    auto answer = client_->send(request);
    tell(request, answer, began);
    return answer;
  }

  Result<Answer> stream(const Request& request, const LineSink& sink, Duration silence) override {
    const SteadyTime began = clock_.steady();
    auto answer = client_->stream(request, sink, silence);
    tell(request, answer, began);
    return answer;
  }

 private:
  void tell(const Request& request, const Result<Answer>& answer, SteadyTime began) {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.steady() - began);
    err_ << request.method << " " << printable(request.target);
    if (!request.body.empty()) err_ << " " << shorten(printable(request.body), kMostOfABody);
    err_ << ": " << (answer ? std::to_string(answer->status) : answer.error().what) << ", " << took.count()
         << " ms" << std::endl;
  }

  std::unique_ptr<Client> client_;
  std::ostream& err_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<Client> make_verbose(std::unique_ptr<Client> client, std::ostream& err, const Clock& clock) {
  return std::make_unique<VerboseClient>(std::move(client), err, clock);
}

}  // namespace spark::cli
