"""Import names of widely used packages: real, even where they are neither declared nor installed."""

WELL_KNOWN = frozenset(
    """
    aiofiles aiohttp airflow aiomysql aioredis alembic altair anthropic anyio apscheduler arrow asgiref asyncpg attr attrs authlib
    azure babel bcrypt behave black bleach bokeh boto boto3 botocore bottle bs4 cachetools cassandra catboost celery certifi
    channels cherrypy click colorama confluent_kafka corsheaders cryptography Crypto Cryptodome cv2 cython dash dask databases
    dateutil deepdiff django django_filters dns docker docx dotenv duckdb elasticsearch environ eventlet fabric factory faker
    falcon fastapi fire flake8 flask flask_admin flask_babel flask_bcrypt flask_caching flask_cors flask_jwt_extended flask_limiter
    flask_login flask_mail flask_marshmallow flask_migrate flask_restful flask_restx flask_security flask_session flask_socketio
    flask_sqlalchemy flask_wtf freezegun ftfy gensim geopandas gevent git github gitlab google googleapiclient gradio graphene grpc
    gunicorn h5py httplib2 httpx huggingface_hub humanize hypothesis idna imageio influxdb invoke ipython IPython isort itsdangerous
    jaxtyping jax jinja2 joblib jose jsonschema jwt kafka keras kombu kubernetes langchain ldap ldap3 lightgbm limits litellm llama_cpp
    loguru lxml magic mako markdown markupsafe marshmallow matplotlib mistune mlflow mock mongoengine motor msgpack multidict mypy
    MySQLdb mysql nacl networkx nltk notebook numba numpy oauthlib odoo onnx onnxruntime openai openpyxl opentelemetry orjson pandas
    paramiko parso passlib pathspec peewee pendulum pexpect phonenumbers PIL pika pipenv playwright plotly poetry polars prefect
    prometheus_client prompt_toolkit protobuf psutil psycopg psycopg2 pyarrow pyasn1 pydantic pydantic_settings pygame pygments
    pymongo pymysql pynput pyodbc pyparsing pypdf PyPDF2 PyQt5 PyQt6 PySide6 pyramid pyspark pytest pytest_asyncio pytz qrcode ray
    rasterio redis regex reportlab requests requests_oauthlib responses rest_framework rich rq ruamel ruff s3fs sanic scapy scipy
    scrapy seaborn selenium sentry_sdk serial setuptools shapely simplejson six sklearn slack_sdk slugify smart_open snowflake
    sortedcontainers spacy sqlalchemy sqlmodel starlette statsmodels streamlit stripe structlog sympy tabulate telegram tenacity
    tensorflow termcolor textual thrift tiktoken tokenizers toml tomli tomlkit torch torchaudio torchvision tornado tortoise tox tqdm
    transformers trio twilio twisted typer typing_extensions tzlocal ujson umap unidecode urllib3 uvicorn uvloop validators vcr vllm
    wandb watchdog weasyprint websocket websockets werkzeug whoosh wrapt wtforms xgboost xlrd xlsxwriter xmltodict yaml yarl zeep zmq zope
    """.split()
)
