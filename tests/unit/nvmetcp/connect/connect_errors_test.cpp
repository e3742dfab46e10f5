#include "nvmetcp/connect/connect_errors.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace spark::nvmetcp {
namespace {

const ConnectAttempt kVolume = [] {
  ConnectAttempt attempt{"raid5-data", "10.0.0.5:4420", "nqn.h", {}};
  attempt.options.interface = "eth7";
  return attempt;
}();
const ConnectAttempt kDiscovery{"nqn.2014-08.org.nvmexpress.discovery", "10.0.0.5:4420", "nqn.h", {}, true};

TEST(ConnectErrors, EachErrnoHasAKindAMessageAndAHint) {
  struct Case {
    int number;
    Errc kind;
    const char* words;
  };
  const std::vector<Case> cases = {
      {ECONNREFUSED, Errc::Unavailable, "connection refused"},
      {EHOSTUNREACH, Errc::Unavailable, "No route to host"},
      {ENETUNREACH, Errc::Unavailable, "Network is unreachable"},
      {ETIMEDOUT, Errc::Unavailable, "does not answer as NVMe/TCP"},
      {ECONNRESET, Errc::Unavailable, "closed the connection"},
      {EALREADY, Errc::Unavailable, "an earlier connection"},
      {EXDEV, Errc::Failed, "CPU is offline"},
      {ENODEV, Errc::Invalid, "eth7"},
      {EINVAL, Errc::Invalid, "refused the options"},
      {EIO, Errc::Denied, "the target refused"},
      {EPERM, Errc::Denied, "Operation not permitted"},
      {ENOKEY, Errc::Denied, "asks for authentication"},
      {EOPNOTSUPP, Errc::Unsupported, "can't"},
      {ENOMEM, Errc::Unavailable, "Cannot allocate memory"},
  };
  for (const Case& one : cases) {
    const Error error = explain_connect(one.number, {}, kVolume);
    EXPECT_EQ(error.kind, one.kind) << one.number;
    EXPECT_NE(error.what.find(one.words), std::string::npos) << error.what;
    EXPECT_NE(error.what.find("10.0.0.5:4420"), std::string::npos) << error.what;
    EXPECT_FALSE(error.hint.empty()) << one.number;
  }
}

TEST(ConnectErrors, ARejectedKeyIsRefusedAndItsFileNamed) {
  ConnectAttempt keyed = kVolume;
  keyed.options.host_key_file = "/etc/keys/host";
  keyed.options.controller_key_file = "/etc/keys/ctrl";
  for (const auto& [number, line] :
       {std::pair(EIO, "nvme nvme1: qid 0: authentication failed, error 1169"),
        std::pair(EIO, "nvme nvme1: qid 0: authentication setup failed"), std::pair(EKEYREJECTED, "")}) {
    const Error error = explain_connect(number, {line}, keyed);
    EXPECT_EQ(error.kind, Errc::Refused) << line;
    EXPECT_NE(error.message().find("rejected the key in /etc/keys/host"), std::string::npos)
        << error.message();
    EXPECT_NE(error.message().find("nqn.h"), std::string::npos) << error.message();
  }
  const Error theirs = explain_connect(EIO,
                                       {"nvme nvme1: qid 0: controller authentication failed",
                                        "nvme nvme1: qid 0: authentication failed, error 1"},
                                       keyed);
  EXPECT_EQ(theirs.kind, Errc::Refused);
  EXPECT_NE(theirs.message().find("the key in /etc/keys/ctrl"), std::string::npos) << theirs.message();
}

TEST(ConnectErrors, AFailedTlsHandshakeNamesTheKeyFileAndTheHostNqn) {
  ConnectAttempt secured = kVolume;
  secured.options.tls_psk_file = "/etc/keys/psk";
  const std::string line = "nvme nvme1: queue 0: TLS handshake complete, error ";
  for (const auto& [number, kind] :
       {std::pair(EACCES, Errc::Refused), std::pair(EKEYREJECTED, Errc::Refused),
        std::pair(ETIMEDOUT, Errc::Unavailable), std::pair(EIO, Errc::Unavailable)}) {
    const Error error = explain_connect(number, {line + std::to_string(-number)}, secured);
    EXPECT_EQ(error.kind, kind) << number;
    EXPECT_NE(error.message().find("TLS handshake failed"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("/etc/keys/psk"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("nqn.h"), std::string::npos) << error.message();
  }
  EXPECT_EQ(explain_connect(ECONNREFUSED, {}, secured).message().find("TLS"), std::string::npos);
}

TEST(ConnectErrors, AMissingHandshakeServiceNamesThePackageToInstall) {
  ConnectAttempt secured = kVolume;
  secured.options.tls_psk_file = "/etc/keys/psk";
  const Error error = explain_connect(ESRCH, {"nvme nvme1: queue 0: failed to start TLS: -3"}, secured);
  EXPECT_EQ(error.kind, Errc::Refused);
  EXPECT_NE(error.hint.find("ktls-utils"), std::string::npos) << error.hint;
}

TEST(ConnectErrors, AMissingKeyNamesTheSettingForIt) {
  const Error error = explain_connect(EIO, {"nvme nvme1: qid 0: authentication setup failed"}, kVolume);
  EXPECT_EQ(error.kind, Errc::Denied);
  EXPECT_NE(error.hint.find("`auth`"), std::string::npos) << error.hint;
}

TEST(ConnectErrors, TheKernelLogExplainsARefusal) {
  const Error not_allowed = explain_connect(
      EIO, {"nvme nvme1: Connect for subsystem raid5-data is not allowed, hostnqn: nqn.h"}, kVolume);
  EXPECT_EQ(not_allowed.kind, Errc::Denied);
  EXPECT_EQ(not_allowed.hint, "add host NQN nqn.h to the allow list of the target's subsystem raid5-data");
  const Error missing = explain_connect(
      EIO, {R"(nvme nvme1: Connect Invalid Data Parameter, subsysnqn "raid5-data")"}, kVolume);
  EXPECT_EQ(missing.kind, Errc::NotFound);
}

TEST(ConnectErrors, LogLinesOfAnotherSubsystemAreIgnored) {
  const Error error = explain_connect(
      EIO, {"nvme nvme1: Connect for subsystem other-data is not allowed, hostnqn: nqn.h"}, kVolume);
  EXPECT_NE(error.hint.find("either"), std::string::npos) << error.hint;
}

TEST(ConnectErrors, AMissingDiscoveryServiceDiffersFromADeniedHost) {
  const std::string nqn = kDiscovery.subsystem;
  const Error none = explain_connect(
      EIO, {"nvme nvme1: Connect Invalid Data Parameter, subsysnqn \"" + nqn + "\""}, kDiscovery);
  EXPECT_EQ(none.kind, Errc::Unsupported);
  EXPECT_NE(none.what.find("no discovery service"), std::string::npos);
  EXPECT_EQ(explain_connect(EIO, {}, kDiscovery).kind, Errc::Unsupported);
  const Error denied = explain_connect(
      EIO, {"nvme nvme1: Connect for subsystem " + nqn + " is not allowed, hostnqn: nqn.h"}, kDiscovery);
  EXPECT_EQ(denied.kind, Errc::Denied);
}

TEST(ConnectErrors, KnownFaultsOfTargetsAndHostsAreDecoded) {
  const Error mnan = explain_connect(EINVAL, {"nvme nvme1: Invalid MNAN value 1024"}, kVolume);
  EXPECT_EQ(mnan.kind, Errc::Unsupported);
  EXPECT_NE(mnan.hint.find("update the target"), std::string::npos);
  const Error clash =
      explain_connect(EINVAL, {"nvme_fabrics: found same hostnqn nqn.h but different hostid 1-2-3"}, kVolume);
  EXPECT_EQ(clash.kind, Errc::Invalid);
  EXPECT_NE(clash.what.find("another host id"), std::string::npos);
}

TEST(ConnectErrors, ADuplicateControllerIdIsRetried) {
  const std::vector<std::string> log = {"nvme nvme4: Duplicate cntlid 1 with nvme3, subsys data, rejecting"};
  EXPECT_TRUE(is_number_taken(log));
  EXPECT_FALSE(is_number_taken({"nvme nvme4: creating 1 I/O queues."}));
  const Error taken = explain_connect(EINVAL, log, kVolume);
  EXPECT_EQ(taken.kind, Errc::Unavailable);
  EXPECT_NE(taken.what.find("still tries to restore"), std::string::npos);
}

}  // namespace
}  // namespace spark::nvmetcp
