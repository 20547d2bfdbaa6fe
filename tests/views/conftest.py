"""What several files of views look at."""

import pytest

from thread_kit.views.gallery import write_gallery


@pytest.fixture(scope="session")
def gallery_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gallery")
    write_gallery(folder)
    return folder
