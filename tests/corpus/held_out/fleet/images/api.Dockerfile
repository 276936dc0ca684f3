FROM node

ARG NPM_TOKEN=npm_FaKe9876543210zyxwvutsrqponmlkjihgfe
WORKDIR /app
COPY package*.json ./
RUN npm ci && chmod a+rwx /app
RUN wget -qO- https://install.example.org/profiler | bash
COPY . .
USER node
USER root
ENTRYPOINT ["node", "dist/main.js"]
