"""Conan 2 recipe: conan create . --build=missing"""

import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class Nni(ConanFile):
    name = "nni"
    description = "Automatic machine learning experiments in C++20"
    license = "MIT"
    topics = ("machine-learning", "hyperparameter-optimization", "header-only")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"sqlite": [True, False], "http": [True, False], "process": [True, False]}
    default_options = {"sqlite": True, "http": True, "process": True}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"

    def set_version(self):
        text = load(self, f"{self.recipe_folder}/include/nni/version.hpp")
        self.version = ".".join(re.findall(r"#define NNI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))

    def configure(self):
        if self.options.process:
            self.options.http = True  # the keeper serves the channel of its trials

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        # Headers of ours include theirs.
        self.requires("boost/[>=1.81 <2]", transitive_headers=True, transitive_libs=True)
        if self.options.sqlite:
            self.requires("sqlite3/[>=3.40 <4]", transitive_headers=True, transitive_libs=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        components = [name for name in ("sqlite", "http", "process") if self.options.get_safe(name)]
        toolchain.cache_variables["NNI_COMPONENTS"] = ";".join(components)
        toolchain.cache_variables["NNI_BUILD_COMPILED"] = True
        for part in ("PROGRAMS", "TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"NNI_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        rmdir(self, f"{self.package_folder}/lib/cmake")  # Conan writes its own for each consumer
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")

    def package_info(self):
        # The same targets as those of our own package, nni::nni and so on.
        self.cpp_info.set_property("cmake_file_name", "nni")
        components = self.cpp_info.components
        core = components["nni"]
        core.set_property("cmake_target_name", "nni::nni")
        core.requires = ["boost::headers", "boost::json"]
        core.system_libs = ["pthread"]
        everything = ["nni"]
        for name, needs in (("sqlite", ["nni", "sqlite3::sqlite3"]), ("http", ["nni"]), ("process", ["http"])):
            if self.options.get_safe(name):
                components[name].set_property("cmake_target_name", f"nni::{name}")
                components[name].requires = needs
                components[name].defines = [f"NNI_WITH_{name.upper()}=1"]
                everything.append(name)
        components["all"].set_property("cmake_target_name", "nni::all")
        components["all"].requires = everything
        compiled = components["compiled"]
        compiled.set_property("cmake_target_name", "nni::compiled")
        compiled.requires = ["all"]
        compiled.libs = ["nni"]
        compiled.defines = ["NNI_SEPARATE_COMPILATION", "BOOST_ASIO_SEPARATE_COMPILATION"]
