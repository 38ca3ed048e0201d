"""The Boost of this machine, for a check of our recipe where no Conan registry can be reached."""

from conan import ConanFile


class SystemBoost(ConanFile):
    name = "boost"
    version = "1.81.0"

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "Boost")
        for part, libraries in (("headers", []), ("json", ["boost_json"])):
            component = self.cpp_info.components[part]
            component.set_property("cmake_target_name", f"Boost::{part}")
            component.includedirs, component.libdirs, component.bindirs = [], [], []
            component.system_libs = libraries
        self.cpp_info.components["json"].requires = ["headers"]
