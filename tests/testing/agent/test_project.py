"""The invented project: real Python, with faults that its tests show."""

from __future__ import annotations

import ast

from ctxgc.testing import Chance, Project


def test_the_project_is_real_python_with_faults_that_change_it() -> None:
    project = Project(Chance("any"), 5)
    for path, text in project.files.items():
        if path.endswith(".py"):
            ast.parse(text)
    for module, function in project.functions():
        whole = project.files[module.path]
        project.break_function(module, function)
        ast.parse(project.files[module.path])
        assert project.failing(module.tests) == [(module, function)]
        project.files[module.path] = whole
