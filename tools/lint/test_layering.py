"""Tests of layering.py."""
import unittest

import layering


class Layering(unittest.TestCase):
    BAD = [
        ("base/a.cpp", '#include "staging/copy/copy.hpp"'),
        ("nvmetcp/a.cpp", '#include "staging/copy/copy.hpp"'),
        ("staging/files/a.cpp", '#include "nvmetcp/types.hpp"'),
        ("staging/manifest/a.cpp", '#include "staging/files/tree.hpp"'),
        ("nvmetcp/sysfs/a.cpp", '#include "nvmetcp/connect/gateway.hpp"'),
        ("bench/measure/a.cpp", '#include "staging/cache/cache.hpp"'),
        ("daemon/config/a.cpp", '#include "nvmetcp/connect/gateway.hpp"'),
        ("daemon/mounts/a.cpp", '#include "daemon/config/model.hpp"'),
        ("cli/view/a.cpp", '#include "daemon/mounts/filesystems/superblock.hpp"'),
        ("cli/a.cpp", '#include "daemon/volumes/volume.hpp"'),
        ("base/a.cpp", '#include "text.hpp"'),
        ("nvmetcp/sysfs/sysfs.cpp", "#include <libnvme.h>"),
        ("daemon/a.cpp", "#  include <libmount/libmount.h>"),
        ("daemon/a.cpp", "#include <blkid.h>"),
        ("daemon/mounts/mounter.cpp", "#include <libmount.h>"),
        ("staging/copy/copy.cpp", "#include <openssl/evp.h>"),
        ("daemon/a.cpp", "#include <yaml-cpp/yaml.h>"),
        ("staging/cache/cache.cpp", "#include <sqlite3.h>"),
        ("staging/copy/copy.cpp", "#include <xxhash.h>"),
        ("staging/copy/copy.cpp", "#include <liburing.h>"),
        ("daemon/main.cpp", "#include <systemd/sd-daemon.h>"),
        ("nvmetcp/a.cpp", "#include <spdlog/spdlog.h>"),
        ("daemon/a.cpp", "#include <CLI/CLI.hpp>"),
        ("daemon/volumes/a.cpp", '#include "nvmetcp/connect/libnvme_gateway.hpp"'),
        ("daemon/service/service.cpp", '#include "daemon/mounts/libmount_mounter.hpp"'),
        ("daemon/config/a.cpp", '#include "nvmetcp/connect/libnvme_gateway.hpp"'),
        ("daemon/volume.cpp", "#include <boost/beast/http.hpp>"),
        ("cli/status.cpp", "#include <boost/asio/io_context.hpp>"),
        ("staging/files/a.cpp", "#include <boost/json.hpp>"),
    ]
    GOOD = [
        ("nvmetcp/connect/libnvme_gateway.cpp", "#include <libnvme.h>"),
        ("bench/measure/copy.cpp", '#include "staging/copy/copy.hpp"\n#include "bench/fio/process.hpp"'),
        ("daemon/volumes/volume.cpp", '#include "base/kernel/mount_table.hpp"\n#include <boost/asio/io_context.hpp>'),
        ("daemon/mounts/libmount_call.cpp", '#include <libmount.h>\n#include "daemon/mounts/mounter.hpp"'),
        ("cli/command_line/app.cpp", '#include <CLI/CLI.hpp>\n#include "daemon/config/parse.hpp"'),
        ("cli/client/client.cpp", "#include <boost/beast/http.hpp>"),
        ("cli/verbs/a.cpp", '#include "base/kernel/mount_table.hpp"'),
        ("base/a.cpp", '#include <vector>\n// #include "staging/copy/copy.hpp"'),
        ("tests/unit/cli/a.cpp", '#include "daemon/volumes/volume.hpp"\n#include <gtest/gtest.h>'),
        ("tests/unit/cli/a.cpp", '#include "helper.hpp"'),
        ("daemon/main.cpp", '#include <CLI/CLI.hpp>\n#include "nvmetcp/connect/libnvme_gateway.hpp"'),
        ("daemon/workers/a.cpp", '#include "daemon/mounts/libmount_mounter.hpp"'),
        ("elsewhere.cpp", '#include "staging/copy/copy.hpp"'),
    ]

    def test_bad_is_found(self):
        for path, text in self.BAD:
            with self.subTest(path=path, text=text):
                self.assertEqual(len(layering.check(path, text)), 1)

    def test_good_is_accepted(self):
        for path, text in self.GOOD:
            with self.subTest(path=path, text=text):
                self.assertEqual(layering.check(path, text), [])

    def test_the_table_and_the_links_have_no_cycle(self):
        tops = {top: [one.split("/")[0] for one in allowed] for top, allowed in layering.ALLOWED.items()}
        self.assertGreater(len(tops), 10)
        self.assertEqual(layering.check_cycles({top: [one for one in others if one != top] for top, others in tops.items()}), [])
        self.assertGreater(len(layering.LINKED), 80)
        turned = {"daemon/workers/verbs/live"}  # May include: its headers are those of the folder that links it
        self.assertEqual(layering.check_cycles({room: sorted(links) if room not in turned else []
                                                for room, links in layering.LINKED.items()}), [])

    def test_links_are_read(self):
        links = layering.links_of({
            "a": "spark_library(spark_a\n  SOURCES a.cpp)",
            "b": "spark_library(spark_b SOURCES b.cpp PUBLIC spark_a)",
            "c/x": "spark_library(spark_x SOURCES x.cpp PUBLIC spark_b)",
            "c/y": "# PUBLIC spark_e\nspark_library(spark_y SOURCES y.cpp PUBLIC spark_x)",
            "d": "spark_library(spark_d SOURCES d.cpp PRIVATE spark_y)\nspark_program(d SOURCES main.cpp LIBRARIES spark_b)",
            "e": "# May include: d\nspark_library(spark_e SOURCES e.cpp)"})
        self.assertEqual(links, {"a": set(), "b": {"a"}, "c/x": {"b"}, "c/y": {"b", "c/x"}, "d": {"c/x", "c/y"}, "e": {"d"}})

    def test_include_cycles_are_found(self):
        self.assertTrue(layering.check_cycles({"a": ["b"], "b": ["c"], "c": ["a"]}))
        self.assertEqual(layering.check_cycles({"a": ["b", "c"], "b": ["c"], "c": []}), [])
